"""The names of units of measurement, with dimension and size in base units."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

Dimension = tuple[tuple[str, int], ...]


def _dimension(**exponents: int) -> Dimension:
    return tuple(sorted(exponents.items()))


_LENGTH, _MASS, _TIME, _CURRENT = (_dimension(**{name: 1}) for name in ("length", "mass", "time", "current"))
_AREA, _VOLUME, _SPEED = _dimension(length=2), _dimension(length=3), _dimension(length=1, time=-1)
_FREQUENCY, _PRESSURE = _dimension(time=-1), _dimension(length=-1, mass=1, time=-2)
_FORCE, _ENERGY = _dimension(length=1, mass=1, time=-2), _dimension(length=2, mass=1, time=-2)
_POWER, _CHARGE = _dimension(length=2, mass=1, time=-3), _dimension(current=1, time=1)
_VOLTAGE = _dimension(length=2, mass=1, time=-3, current=-1)
_RESISTANCE = _dimension(length=2, mass=1, time=-3, current=-2)
_CAPACITY = _dimension(length=-2, mass=-1, time=4, current=2)
_INDUCTANCE, _FIELD = _dimension(length=2, mass=1, time=-2, current=-2), _dimension(mass=1, time=-2, current=-1)
_BYTE, _AMOUNT = _dimension(byte=1), _dimension(amount=1)

_PREFIXES = {"T": ("tera", 12), "G": ("giga", 9), "M": ("mega", 6), "k": ("kilo", 3), "h": ("hecto", 2),
             "d": ("deci", -1), "c": ("centi", -2), "m": ("milli", -3), "μ": ("micro", -6), "n": ("nano", -9),
             "p": ("pico", -12)}  # fmt: skip
# dimension, size, symbols, long names (plurals in -s are added), prefixes in use
_PREFIXED: tuple[tuple[Dimension, str, str, str, str], ...] = (
    (_LENGTH, "1", "m", "meter metre", "kdcmμnp"), (_MASS, "1/1000", "g", "gram gramme", "kmμn"),
    (_TIME, "1", "s", "second", "mμnp"), (_VOLUME, "1/1000", "L l", "liter litre", "hdcmμ"),
    (_FORCE, "1", "N", "newton", "km"), (_ENERGY, "1", "J", "joule", "MGkm"), (_POWER, "1", "W", "watt", "TGMkmμ"),
    (_FREQUENCY, "1", "Hz", "hertz", "TGMk"), (_PRESSURE, "1", "Pa", "pascal", "GMkh"),
    (_CURRENT, "1", "A", "ampere amp", "kmμn"), (_VOLTAGE, "1", "V", "volt", "kmμ"),
    (_RESISTANCE, "1", "Ω Omega ohm Ohm Ом", "ohm", "GMkmμ"), (_CHARGE, "1", "C", "coulomb", "mμnp"),
    (_CAPACITY, "1", "F", "farad", "mμnp"), (_INDUCTANCE, "1", "H", "henry", "mμ"), (_FIELD, "1", "T", "tesla", "mμ"),
    (_AMOUNT, "1", "mol", "mole", "km"), (_ENERGY, "4.184", "cal", "calorie", "k"),
    (_ENERGY, "1.602176634e-19", "eV", "electronvolt", "TGMk"), (_PRESSURE, "100000", "bar", "bar", "m"),
    (_BYTE, "1", "B", "byte", "TGMk"),
)  # fmt: skip
_PLAIN: tuple[tuple[Dimension, str, str], ...] = (
    (_LENGTH, "1/1000000", "micron microns"), (_LENGTH, "0.0254", "inch inches"), (_LENGTH, "0.3048", "ft foot feet"),
    (_LENGTH, "0.9144", "yd yard yards yds"), (_LENGTH, "1609.344", "mi mile miles"), (_LENGTH, "1852", "nmi"),
    (_LENGTH, "1000", "kms"), (_LENGTH, "1e-10", "angstrom angstroms Å"),
    (_MASS, "1", "kgs kilo kilos"), (_MASS, "1/1000", "gm"), (_MASS, "1000", "tonne tonnes"),
    (_MASS, "0.45359237", "lb lbs pound pounds"), (_MASS, "0.028349523125", "oz ounce ounces"),
    (_MASS, "907.18474", "ton tons"),
    (_TIME, "1", "sec secs"), (_TIME, "60", "min mins minute minutes"), (_TIME, "3600", "h hr hrs hour hours"),
    (_TIME, "86400", "day days"), (_TIME, "604800", "week weeks wk wks"),
    ((("months", 1),), "1", "month months"), ((("months", 1),), "12", "year years yr yrs"),
    ((("months", 1),), "120", "decade decades"), ((("months", 1),), "1200", "century centuries"),
    (_VOLUME, "1/1000000", "cc ccm"), (_VOLUME, "1/1000000", "ml"), (_VOLUME, "0.003785411784", "gal gallon gallons"),
    (_VOLUME, "0.000946352946", "quart quarts qt"), (_VOLUME, "0.000473176473", "pint pints pt"),
    (_VOLUME, "0.0002365882365", "cup cups"), (_AREA, "4046.8564224", "acre acres"),
    (_AREA, "10000", "hectare hectares ha"), (_SPEED, "0.44704", "mph"), (_SPEED, "5/18", "kph kmh kmph"),
    (_SPEED, "463/900", "knot knots"), ((("angle", 1),), "1", "rad radian radians rads"),
    ((("angle_degree", 1),), "1", "degree degrees deg °"),
    ((("angle_degree", 1),), "1/60", "arcminute arcminutes arcmin"),
    ((("angle_degree", 1),), "1/3600", "arcsecond arcseconds arcsec"),
    ((("USD", 1),), "1", "USD_ USD dollar dollars buck bucks"), ((("USD", 1),), "1/100", "cent cents ¢"),
    ((("USD", 1),), "1/10", "dime dimes"), ((("EUR", 1),), "1", "EUR euro euros €"), ((("GBP", 1),), "1", "GBP £"),
    ((("INR", 1),), "1", "INR rupee rupees Rs ₹ रुपये रुपए"), ((("JPY", 1),), "1", "JPY yen ¥ 円"),
    ((("INR", 1),), "1/100", "paise paisa"),
    ((("CNY", 1),), "1", "CNY yuan RMB 元"), ((("RUB", 1),), "1", "rubles ruble ₽ рублей рубля рубль руб"),
    (_PRESSURE, "101325", "atm"), (_PRESSURE, "6894.757293168", "psi"), (_PRESSURE, "133.322387415", "mmHg torr"),
    (_ENERGY, "3600000", "kWh"), (_ENERGY, "3600", "Wh"), (_POWER, "745.69987158227022", "hp horsepower"),
    (_FREQUENCY, "1/60", "rpm"), ((("kelvin", 1),), "1", "K kelvin kelvins"),
    ((("celsius", 1),), "1", "°C Celsius celsius"), ((("fahrenheit", 1),), "1", "°F Fahrenheit fahrenheit"),
    (_BYTE, "1/8", "bit bits"), (_BYTE, "1000", "KB"), ((("unit", 1),), "1", "unit units"),
    ((("CNY", 1),), "1/10", "角"), ((("RUB", 1),), "1/100", "копеек копейки копейка коп"),
    (_LENGTH, "1/1000000", "мкм"), (_MASS, "1/1000", "г"), (_MASS, "1/1000000", "мг"), (_MASS, "1000", "т"),
    (_TIME, "1", "с сек"), (_TIME, "1/1000", "мс"), (_FORCE, "1", "Н"), (_FORCE, "1000", "кН"), (_ENERGY, "1", "Дж"),
    (_ENERGY, "1000", "кДж"), (_POWER, "1", "Вт"), (_POWER, "1000", "кВт"), (_FREQUENCY, "1", "Гц"),
    (_PRESSURE, "1", "Па"), (_PRESSURE, "1000", "кПа"), (_CURRENT, "1", "А"), (_VOLTAGE, "1", "В"),
    (_VOLUME, "1/1000", "л"), (_AREA, "10000", "га"),
    # Other languages; without accents, as names are looked up without them.
    (_LENGTH, "1", "Metern metro metros metri mètres 米 メートル 미터 м метр метра метров"),
    (_LENGTH, "1/100", "Zentimeter Zentimetern centimetro centimetros centimetri 厘米 公分 センチメートル см"),
    (_LENGTH, "1000", "Kilometern quilometro quilometros kilometro kilometros chilometri 千米 公里 キロメートル км"),
    (_LENGTH, "1/1000", "Millimetern milimetro milimetros 毫米 мм"), (_LENGTH, "1/10", "Dezimeter 分米 дм"),
    (_MASS, "1", "Kilogramm kilogramo kilogramos quilogramas quilos 千克 公斤 キログラム кг"),
    (_MASS, "1/1000", "Gramm gramo gramos gramas grammi 克 グラム грамм граммов"), (_MASS, "1000", "吨 噸 тонн тонны"),
    (_TIME, "1", "Sekunde Sekunden segundo segundos secondes secondi 秒 초 секунд секунды"),
    (_TIME, "60", "Minuten minuto minutos minuti 分钟 分鐘 分 분 мин минут минуты"),
    (_TIME, "3600", "Stunde Stunden hora horas heure heures ore 小时 小時 時間 시간 часов часа ч"),
    (_TIME, "86400", "Tag Tage Tagen dia dias jour jours giorni 天 日 일 дней дня день"),
    (_TIME, "604800", "Woche Wochen semana semanas semaine semaines settimane 周 недель"),
    ((("months", 1),), "1", "Monat Monate mes meses mois mesi 个月 месяцев"),
    ((("months", 1),), "12", "Jahr Jahre ano anos annee annees ans anni 年 лет года"),
    (_VOLUME, "1/1000", "Litern litro litros litri 升 リットル литров"), (_VOLUME, "1/1000000", "毫升 мл"),
    (_AREA, "1", "Quadratmeter Quadratmetern 平方米 кв"), (_AREA, "1/10000", "Quadratzentimeter 平方厘米"),
    (_VOLUME, "1", "Kubikmeter 立方米"), (_VOLUME, "1/1000000", "Kubikzentimeter 立方厘米"),
    ((("angle_degree", 1),), "1", "Grad grado grados graus gradi degre degres 度 도 градусов градуса"),
    ((("angle_degree", 1),), "1", "stopni derece graden"),
    (_LENGTH, "1", "metr metry metrow met متر مترا أمتار метрів"),
    (_LENGTH, "1/100", "centymetr centymetry centymetrow santimetre سم سنتيمتر"),
    (_LENGTH, "1/100", "сантиметров сантиметра сантиметр сантиметрах 센티미터"),
    (_LENGTH, "1000", "kilometry kilometrow kilometre كم كيلومتر كيلومترا километров километра километр 킬로미터"),
    (_LENGTH, "1/1000", "milimetr milimetry milimetrow milimetre مم миллиметров 밀리미터"),
    (_MASS, "1", "kilogramy kilogramow كغ كجم كيلوغرام كيلوغراما килограммов килограмма килограмм 킬로그램"),
    (_MASS, "1/1000", "gramy gramow غرام غراما جرام грамма 그램"),
    (_TIME, "1", "sekunda sekundy sekund saniye giay seconde seconden sekunder detik ثانية ثوان ثواني секунда секунд"),
    (_TIME, "60", "minuta minuty minut dakika phut minuut minuten minuter menit دقيقة دقائق минута хвилин хвилини"),
    (_TIME, "3600", "godzina godziny godzin godz saat gio uur uren timme timmar jam ساعة ساعات"),
    (_TIME, "3600", "час годин години 时 時"),
    (_TIME, "86400", "dzien dni gun ngay dag dagen dagar hari يوم أيام يوما 日間 днів дні суток"),
    (_TIME, "604800", "tydzien tygodnie tygodni hafta tuan weken vecka veckor minggu"),
    (_TIME, "604800", "أسبوع أسابيع неделя недели тижнів 주"),
    ((("months", 1),), "1", "miesiac miesiace miesiecy thang maand maanden manad manader bulan"),
    ((("months", 1),), "1", "شهر أشهر شهرا месяц месяца 개월 か月 ヶ月"),
    ((("months", 1),), "12", "rok lata lat yıl nam tuoi jaar jaren tahun"),
    ((("months", 1),), "12", "سنة سنوات عام أعوام год років роки 년 살 歳 岁 歲"),
    (_VOLUME, "1/1000", "litr litra litry litrow lit لتر لترا لترات литра литр літрів 리터"),
    ((("VND", 1),), "1", "VND đong"), ((("IDR", 1),), "1", "IDR rupiah"), ((("SAR", 1),), "1", "SAR ريال ريالا ريالات"),
    ((("PLN", 1),), "1", "PLN zł zl złotych zlotych złote zlote złoty zloty"), ((("BRL", 1),), "1", "BRL reais"),
    ((("UAH", 1),), "1", "UAH грн гривен гривень"), ((("SEK", 1),), "1", "SEK kr kronor"),
    ((("TRY", 1),), "1", "TRY lira TL ₺"),
    ((("KRW", 1),), "1", "KRW 원"), ((("CZK", 1),), "1", "CZK Kč Kc korun"),
    ((("HUF", 1),), "1", "HUF Ft forint"),
    ((("USD", 1),), "1", "dolar dolares dollari 美元 долларов"), ((("USD", 1),), "1/100", "centavos 美分"),
    (_LENGTH, "1", "metru метри μέτρο μέτρα मीटर मी เมตร"),
    (_LENGTH, "1/100", "centimetr centimetru centimetry sentimeter xentimet сантиметри сантиметрів"),
    (_LENGTH, "1/100", "سنتيمترا سنتيمترات センチ सेमी"),
    (_LENGTH, "1000", "kilometr kilometru kilomet кілометр кілометри кілометрів كيلومترات किलोमीटर किमी کیلومتر"),
    (_LENGTH, "1/1000", "मिमी milimetru миллиметр миллиметра міліметрів ملم مليمتر ミリメートル"),
    (_MASS, "1", "kilogramu chilo chili chilogrammo chilogrammi kilogam кілограм кілограми кілограмів"),
    (_MASS, "1", "كيلوغرامات كيلوجرام كيلوجراما किलोग्राम किग्रा کیلوگرم"),
    (_MASS, "1/1000", "grammo gramu gam грам грами грамів غرامات ग्राम"),
    (_MASS, "1/1000000", "миллиграмм миллиграммов"),
    (_TIME, "1", "sekundu secunde секунду секунди ثوانٍ सेकंड วินาที ثانیه"),
    (_TIME, "60", "minutu minutter perc минуту хвилина хвилину λεπτά मिनट นาที دقیقه"),
    (_TIME, "3600", "timma timmen hodina hodiny hodin hodinu godzine ora година годину ώρα ώρες घंटा घंटे ชั่วโมง ساعت"),
    (_TIME, "86400", "dygn dny dnu paivaa сутки दिन วัน"), (_TIME, "604800", "tyden tydny tydnu uger неделю सप्ताह"),
    ((("months", 1),), "1", "mesic mesice mesicu महीने"), ((("months", 1),), "12", "roky roku वर्ष साल"),
    (_VOLUME, "1/1000", "litru літр літри литры लीटर"),
    (_VOLUME, "1/1000000", "mililitro mililitros millilitri mililitr миллилитров мілілітрів ミリリットル 밀리리터 مل"),
    ((("angle_degree", 1),), "1", "stopien stopnie stupnu stupne grader derajat đo fok μοίρες"),
    ((("angle_degree", 1),), "1", "градус градуси градусів درجة درجات डिग्री अंश"),
    ((("celsius", 1),), "1", "摄氏度 攝氏度"), ((("EUR", 1),), "1", "евро євро 欧元 歐元 ユーロ 유로 يورو"),
    ((("USD", 1),), "1", "dolarow dolary доллар доллара доларів ドル 달러 美金 دولار دولارا دولارات डॉलर"),
    ((("SEK", 1),), "1", "krona kroner"), ((("EGP", 1),), "1", "جنيه جنيها جنيهات"), ((("AED", 1),), "1", "درهم دراهم"),
)  # fmt: skip


def named() -> Iterator[tuple[str, Dimension, Fraction]]:
    """Yields (name, dimension, size in base units) for every name."""
    for dimension, size, symbols, names, prefixes in _PREFIXED:
        base = Fraction(size)
        for name in (*symbols.split(), *names.split(), *(f"{name}s" for name in names.split())):
            yield name, dimension, base
        for prefix in prefixes:
            long, power = _PREFIXES[prefix]
            for symbol in symbols.split():
                yield prefix + symbol, dimension, base * Fraction(10) ** power
            for name in names.split():
                yield long + name, dimension, base * Fraction(10) ** power
                yield long + name + "s", dimension, base * Fraction(10) ** power
    for dimension, size, names in _PLAIN:
        for name in names.split():
            yield name, dimension, Fraction(size)
