"""The system call filter of a run: calls that no honest program makes kill it, calls it may only try are refused.

It is a deny list below a ceiling: calls newer than the newest known one appear not to exist (ENOSYS). It is built as a
search tree, because the kernel walks the filter once for every call number when it is installed. If the fork-server can
live under most of it, the server installs that part once and each run inherits it; the run adds the rest.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Callable, Mapping

from verifiers.sandbox import linux

_ALLOW = 0x7FFF0000
_KILL = 0x80000000  # SECCOMP_RET_KILL_PROCESS: the verdict is SV
_LOAD, _JEQ, _JGE, _JSET, _JUMP, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x05, 0x06
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name -> (number on x86_64, on aarch64); None: the architecture lacks it
_FORBIDDEN = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "acct": (163, 89), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "open_by_handle_at": (304, 265), "kcmp": (312, 272),
    "syslog": (103, 116), "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None), "fanotify_init": (300, 262),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "move_pages": (279, 239), "migrate_pages": (256, 238),
    "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "uselib": (134, None), "_sysctl": (156, None),
}  # fmt: skip
_REFUSED = {  # honest runtimes try these calls and tolerate a refusal
    "name_to_handle_at": (303, 264), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "vmsplice": (278, 75),
    # System V segments and memory files hold memory that no process is charged for.
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "process_mrelease": (448, 448), "fanotify_mark": (301, 263), "memfd_secret": (447, 447),
    # The whole machine, or all processes of this user, have a fixed number of these.
    "io_setup": (206, 0), "inotify_init": (253, None), "inotify_init1": (294, 26),
    # A run of low priority waits for a core as on an overloaded machine, which would extend its time.
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "setpriority": (141, 140), "ioprio_set": (251, 30),
}  # fmt: skip
_ABSENT = {  # for these, honest runtimes fall back to older calls if they seem not to exist
    "memfd_create": (319, 279), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "clone3": (435, 435),
    "statmount": (457, 457), "listmount": (458, 458), "lsm_get_self_attr": (459, 459),
    "lsm_set_self_attr": (460, 460), "lsm_list_modules": (461, 461),
}  # fmt: skip
_DONE = {  # these seem to succeed: the caller would wait for all that the machine has to write
    "sync": (162, 81), "syncfs": (306, 267), "fsync": (74, 82), "fdatasync": (75, 83), "msync": (26, 227),
    "sync_file_range": (277, 84),
}  # fmt: skip
_CEILING = 463  # first number that is treated as unknown
# Without namespaces nothing else separates a run from other processes of its user or from the modes of their files.
_NO_NAMESPACES = {
    "kill": (62, 129), "tkill": (200, 130), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "chmod": (90, None), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, None), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fchown": (93, 55), "fchmod": (91, 52), "fremovexattr": (199, 16), "setxattrat": (463, 463),
    "fork": (57, None), "vfork": (58, None), "bind": (49, 200),
    "connect": (42, 203), "timer_create": (222, 107), "fallocate": (285, 47),
    # System V and POSIX resources of this user's processes are reached by a number or a name.
    "shmat": (30, 196), "shmctl": (31, 195), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_unlink": (241, 181),
}  # fmt: skip
_CLONE, _FORK = {"clone": (56, 220)}, {"fork": (57, None), "vfork": (58, None)}
_SOCKET, _IOCTL = {"socket": (41, 198), "socketpair": (53, 199)}, {"ioctl": (16, 29)}
_SETSOCKOPT, _FCNTL, _PRCTL = {"setsockopt": (54, 208)}, {"fcntl": (72, 25)}, {"prctl": (157, 167)}
_SETRLIMIT, _PRLIMIT = {"setrlimit": (160, 164)}, {"prlimit64": (302, 261)}
# Each write to a file opened so waits for the disk, hundreds of times a second: the flags, by argument.
_OPEN, _OPENAT, _PWRITEV2 = {"open": (2, None)}, {"openat": (257, 56)}, {"pwritev2": (328, 287)}
_SYNCHRONOUS, _SYNCHRONOUS_WRITE = 0o4010000, 0x6  # O_SYNC and O_DSYNC; RWF_SYNC and RWF_DSYNC
_OPENAT2 = {"openat2": (437, 437)}  # its flags are in memory, which a filter can't read
_SECCOMP, _TGKILL = {"seccomp": (317, 277)}, {"tgkill": (234, 131)}
_OF_SERVER = ("mount", "clone", "seccomp", "setrlimit", "prlimit64")  # calls that set up a run's isolation and limits
_AF_UNIX = 1
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*, NEWTIME included
_CLONE_THREAD = 0x00010000
_TERMINAL_INPUT = {0x5412, 0x541C}  # TIOCSTI, TIOCLINUX
_SOL_SOCKET, _PACKET_FILTERS = 1, {26, 50, 51, 52}  # memory for their code is limited machine-wide
_OWN_FILTER = {22, 62}  # prctl: another filter (as above); scheduling that empties the sibling of its core
_HIDING = {4}  # prctl: would hide the process from the watch
# fcntl: leases make others wait who open the file; notices; pipes out of the user's share; hints that a file keeps.
_LASTING = {1024, 1026, 1031, 1036, 1038}
_SIGNAL_OTHERS = {8, 10, 15}  # fcntl: the kernel would send any of its signals to any process of this user
_OWN_SOCKETS_SIGNAL = {0x8901, 0x8902}  # ioctl: the same

_Instruction = tuple[int, int, int, int]
_Program = list[_Instruction]
_Numbers = tuple[int | None, int | None]
_Action = tuple[_Numbers, _Program]


def for_server() -> bytes:
    """Returns the part that also applies to a fork-server with its own namespaces, as `struct sock_filter` array."""
    actions = _denied(namespaces=True, processes=True)
    for name in _OF_SERVER:
        del actions[name]
    return _compiled(actions)


def for_run(*, namespaces: bool, processes: bool) -> bytes:
    """Returns the filter that a run installs: with namespaces the part beyond `for_server`, otherwise all of it.

    Args:
        namespaces: the run has its own PID and mount namespaces; without them far more is refused.
        processes: the run may start processes; threads are always allowed.
    """
    actions = _denied(namespaces=namespaces, processes=processes)
    if namespaces:
        inherited = _denied(namespaces=True, processes=True)
        actions = {
            name: action for name, action in actions.items() if name in _OF_SERVER or inherited.get(name) != action
        }
    return _compiled(actions)


def _denied(*, namespaces: bool, processes: bool) -> dict[str, _Action]:
    """Returns the action for each call that is not simply allowed, by name."""
    actions: dict[str, _Action] = {}

    def add(calls: Mapping[str, _Numbers], body: _Program) -> None:
        actions.update({name: (numbers, body) for name, numbers in calls.items()})

    refuse = _return(_errno(errno.EPERM))
    add(_FORBIDDEN, _return(_KILL))
    add(_REFUSED, refuse)
    add(_ABSENT, _return(_errno(errno.ENOSYS)))
    add(_DONE, _return(_errno(0)))
    for calls, argument, flags in (
        (_OPEN, 1, _SYNCHRONOUS), (_OPENAT, 2, _SYNCHRONOUS), (_PWRITEV2, 5, _SYNCHRONOUS_WRITE),
    ):  # fmt: skip
        add(calls, [_load(argument), (_JSET, 0, 1, flags), *refuse, *_return(_ALLOW)])
    add(_OPENAT2, _return(_errno(errno.ENOSYS)))
    add(_SECCOMP, refuse)
    add(_PRCTL, [_load(0), *_any_of(_OWN_FILTER | (set() if namespaces else _HIDING), _errno(errno.EPERM)),
                 *_return(_ALLOW)])  # fmt: skip
    add(_FCNTL, [_load(1), *_any_of(_LASTING | (set() if namespaces else _SIGNAL_OTHERS), _errno(errno.EPERM)),
                 *_return(_ALLOW)])  # fmt: skip
    add(_SETSOCKOPT, [_load(1), (_JEQ, 1, 0, _SOL_SOCKET), *_return(_ALLOW), _load(2),
                      *_any_of(_PACKET_FILTERS, _errno(errno.EPERM)), *_return(_ALLOW)])  # fmt: skip
    if not namespaces:
        add(_NO_NAMESPACES, refuse)
        add(_TGKILL, _unless_own(0))
    # A limit on CPU time would let a run end itself in a way that only the machine should, so setting it does nothing.
    add(_SETRLIMIT, [_load(0), *_any_of({linux.RLIMIT_CPU}, _errno(0)), *_return(_ALLOW)])
    add(_PRLIMIT, _own_limits())
    # Libraries sometimes look up an address of the machine (uuid1), so the internet families are only refused.
    internet = _any_of({2, 10, 16}, _errno(errno.EPERM))
    local = _any_of({_AF_UNIX}, _ALLOW)
    if (
        not namespaces
    ):  # a datagram reaches any socket in the file system without `connect`; bit 1: SOCK_DGRAM, SOCK_RAW
        local = [(_JEQ, 0, 4, _AF_UNIX), _load(1), (_JSET, 0, 1, 2), *_return(_errno(errno.EPERM)), *_return(_ALLOW)]
    add(_SOCKET, [_load(0), *local, *internet, *_return(_KILL)])
    signals = [] if namespaces else _any_of(_OWN_SOCKETS_SIGNAL, _errno(errno.EPERM))
    add(_IOCTL, [_load(1), *_any_of(_TERMINAL_INPUT, _KILL), *signals, *_return(_ALLOW)])
    clone: _Program = [_load(0), (_JSET, 0, 1, _NEW_NAMESPACES), *_return(_KILL)]
    if not (processes and namespaces):
        clone += [(_JSET, 1, 0, _CLONE_THREAD), *_return(_errno(errno.EAGAIN))]
        add(_FORK, _return(_errno(errno.EAGAIN)))
    add(_CLONE, [*clone, *_return(_ALLOW)])
    return actions


def _compiled(actions: dict[str, _Action]) -> bytes:
    column = 0 if linux.MACHINE == "x86_64" else 1
    entries = sorted((number, body) for numbers, body in actions.values() if (number := numbers[column]) is not None)
    ceiling = _return(_KILL if column == 0 else _errno(errno.ENOSYS))  # bit 30 set: the x32 interface
    program: _Program = [
        (_LOAD, 0, 0, 4),
        (_JEQ, 1, 0, _ARCHITECTURE[linux.MACHINE]),
        *_return(_KILL),
        (_LOAD, 0, 0, 0),
        (_JGE, 0, 1, 0x40000000),
        *ceiling,
        (_JGE, 0, 1, _CEILING),
        *_return(_errno(errno.ENOSYS)),
        *_tree(entries),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def installer(program: bytes) -> Callable[[], int]:
    """Returns the call that installs the filter on the calling thread; needs no_new_privs."""
    return linux.prepared("seccomp", 1, 0, ctypes.byref(_FilterProgram(len(program) // 8, program)))


def _errno(number: int) -> int:
    return 0x00050000 | number


def _return(action: int) -> _Program:
    return [(_RETURN, 0, 0, action)]


def _load(argument: int, *, high: bool = False) -> _Instruction:
    return (_LOAD, 0, 0, 16 + 8 * argument + 4 * high)  # both architectures are little-endian


def _any_of(values: set[int], action: int) -> _Program:
    return [step for value in sorted(values) for step in ((_JEQ, 0, 1, value), *_return(action))]


def _unless_own(argument: int) -> _Program:
    """Refuses the call unless the pid is 0, "myself"; another number may be another process of the same user."""
    return [_load(argument), (_JEQ, 0, 1, 0), *_return(_ALLOW), *_return(_errno(errno.EPERM))]


def _own_limits() -> _Program:
    """Allows prlimit64 on itself only; setting its CPU time does nothing. A pointer is null if both halves are."""
    return [
        _load(0), (_JEQ, 0, 8, 0), _load(1), (_JEQ, 0, 4, linux.RLIMIT_CPU), _load(2), (_JEQ, 0, 3, 0),
        _load(2, high=True), (_JEQ, 0, 1, 0), *_return(_ALLOW), *_return(_errno(0)), *_return(_errno(errno.EPERM)),
    ]  # fmt: skip


def _tree(entries: list[tuple[int, _Program]]) -> _Program:
    if len(entries) <= 3:
        linear: _Program = []
        for number, body in entries:
            linear += [(_JEQ, 0, len(body), number), *body]
        return [*linear, *_return(_ALLOW)]
    middle = len(entries) // 2
    left, right = _tree(entries[:middle]), _tree(entries[middle:])
    if len(left) < 256:
        return [(_JGE, len(left), 0, entries[middle][0]), *left, *right]
    return [(_JGE, 0, 1, entries[middle][0]), (_JUMP, 0, 0, len(left)), *left, *right]
