"""The code verifier's verdicts on programs in C++ and JavaScript."""

from __future__ import annotations

import pytest

from verifiers import Completion, Problem, VerifierError
from verifiers.sandbox import CodeVerifier, probe
from verifiers.sandbox.languages import LANGUAGES, installed

ADD = {"style": "function", "entry_point": "add", "args": [[1, 2], [3, 4]], "outs": [3, 7]}
STDIN = {"style": "stdin", "inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"]}


_THREADS = """
#include <atomic>
#include <cstdio>
#include <future>
#include <thread>
#include <vector>
int main() {
    long a, b;
    if (scanf("%ld %ld", &a, &b) != 2) return 1;
    std::atomic<long> sum{0};
    std::vector<std::thread> all;
    for (int i = 0; i < 8; i++) all.emplace_back([&] { sum += a + b; });
    for (auto &one : all) one.join();
    printf("%ld", std::async(std::launch::async, [&] { return sum.load() / 8; }).get());
}
"""
_DEEP = """
#include <cstdio>
long deep(long n) { volatile char block[64]; block[0] = 0; return n ? deep(n - 1) + 1 + block[0] : 0; }
int main() {
    long a, b;
    if (scanf("%ld %ld", &a, &b) != 2) return 1;
    printf("%ld", deep(1000000) - 1000000 + a + b);
}
"""


def check_installed(language: str) -> None:
    """Skips the test if the language, or what its compiler needs, is not installed."""
    known = LANGUAGES[language]
    try:
        installed((*known.build, *known.start)[0])
    except VerifierError as error:
        pytest.skip(str(error))
    if not {"full", "ns"} & set(probe.report().works):
        pytest.skip(f"compilers need processes, so namespaces: {probe.report().missing['ns']}")


@pytest.mark.parametrize(
    ("language", "code", "reason"),
    [
        ("cpp", "#include <iostream>\nint main(){long a,b;std::cin>>a>>b;std::cout<<a+b;}", "AC"),
        ("cpp", _THREADS, "AC"),
        ("cpp", _DEEP, "AC"),
        ("cpp", "int main( {", "CE"),
        ("cpp", "#include <cstdlib>\nint main(){abort();}", "RTE"),
        ("cpp", "int main(){for(volatile long i=0;;i=i+1);}", "TLE"),
        ("cpp", "#include <vector>\nint main(){std::vector<char> v(4L<<30);v[5]=1;}", "MLE"),
        ("cpp", '#include <fstream>\nint main(){return std::ifstream("/etc/shadow").good()?0:4;}', "RTE"),
        (
            "javascript",
            "const [a,b]=require('fs').readFileSync(0,'utf8').split(' ').map(Number);console.log(a+b)",
            "AC",
        ),
        ("javascript", "console.log(require('fs').readFileSync('/dev/stdin','utf8'))", "WA"),
        ("javascript", "process.exit(2)", "RTE"),
        ("javascript", "while(true);", "TLE"),
    ],
)
def test_other_languages(language: str, code: str, reason: str) -> None:
    check_installed(language)
    with CodeVerifier(language=language, time_s=1, servers=2) as verifier:
        verdict = verifier(Problem(tests=STDIN), Completion(f"```{language}\n{code}\n```"))
        assert verdict.reason == reason, verdict.detail
        with pytest.raises(VerifierError, match="style 'stdin' only"):
            verifier(Problem(tests=ADD), Completion(code))


def test_sixteen_threads_at_once_fit_into_little_memory() -> None:
    """The same holds in C++, where glibc would end the program instead of raising."""
    code = """#include <atomic>
#include <iostream>
#include <thread>
#include <vector>
int main() {
    std::atomic<int> up{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; i++)
        threads.emplace_back([&] { std::vector<int> own(1000, 1); up++; while (up < 16) std::this_thread::yield(); });
    for (auto& thread : threads) thread.join();
    std::cout << up << std::endl;
}"""
    check_installed("cpp")
    with CodeVerifier(language="cpp", servers=1, memory_mib=256) as verifier:
        tests = {"style": "stdin", "inputs": [""], "outputs": ["16"]}
        verdict = verifier(Problem(tests=tests), Completion(f"```cpp\n{code}\n```"))
        assert verdict.reason == "AC", verdict.detail
