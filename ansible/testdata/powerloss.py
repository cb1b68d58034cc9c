"""Plays the module host_settings on a host of files, for TestPowerLossOfATunedHost.

    powerloss.py record ROOT         prints each change of a file below ROOT, a line of
                                     JSON each, while the host is tuned twice and restored
    powerloss.py recover FOLDER      for each folder in FOLDER, which is what a loss of
                                     power left of ROOT: boots, runs the next command, and
                                     prints what is not as before
"""

import base64
import json
import os
import shutil
import sys
import types

here = os.path.dirname(os.path.abspath(__file__))
plugins = os.path.join(os.path.dirname(here), "plugins")

STATE = "/var/lib/cnibench/host_settings.json"
# What outlives a reboot, and what does not.
DISK = {"/etc/tuned/active_profile": "balanced\n", "/etc/default/grub": "GRUB_TIMEOUT=5\n"}
BOOTED = {"sysctl net.a": "1", "sysctl net.b": "1"}

host = types.SimpleNamespace(root=None, boot="first", live=None, steps=None)


def below(path):
    return host.root + path if path.startswith(("/etc/", "/var/")) else path


def step(kind, path, **more):
    if host.steps is not None:
        host.steps.append(dict(Kind=kind, Path=path, **more))


class Written(object):
    """A file that is written: what was buffered reaches the kernel with flush or close."""

    def __init__(self, path):
        step("truncate" if os.path.exists(path) else "create", path, At=0)
        self.file, self.path, self.at, self.text = open(path, "w"), path, 0, ""

    def write(self, text):
        self.text += text

    def flush(self):
        if not self.text:
            return
        self.file.write(self.text)
        self.file.flush()
        step("write", self.path, At=self.at, Data=base64.b64encode(self.text.encode()).decode())
        self.at, self.text = self.at + len(self.text), ""

    def fileno(self):
        return self.file.fileno()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.flush()
        self.file.close()


def open_below(path, mode="r"):
    path = below(path)
    if path.startswith("/proc/"):
        raise IOError("not here")
    return Written(path) if mode == "w" else open(path, mode)


class Paths(object):
    """os.path of the host."""

    join, dirname, abspath = staticmethod(os.path.join), staticmethod(os.path.dirname), staticmethod(os.path.abspath)
    exists = staticmethod(lambda p: os.path.exists(below(p)))
    isfile = staticmethod(lambda p: os.path.isfile(below(p)))
    isdir = staticmethod(lambda p: os.path.isdir(below(p)))
    ismount = staticmethod(lambda p: False)


class System(object):
    """os of the host."""

    path, W_OK, O_RDONLY = Paths, os.W_OK, os.O_RDONLY
    close = staticmethod(os.close)
    access = staticmethod(lambda p, m: os.access(below(p), m))
    open = staticmethod(lambda p, f: os.open(below(p), f))
    listdir = staticmethod(lambda p: os.listdir(below(p)))

    @staticmethod
    def fsync(fd):
        path = os.readlink("/proc/self/fd/%d" % fd)
        step("sync folder" if os.path.isdir(path) else "sync", path)

    @staticmethod
    def mkdir(path, mode):
        os.mkdir(below(path), mode)
        step("mkdir", below(path))

    @staticmethod
    def rmdir(path):
        os.rmdir(below(path))
        step("remove", below(path))

    @staticmethod
    def unlink(path):
        os.unlink(below(path))
        step("remove", below(path))

    @staticmethod
    def rename(a, b):
        os.rename(below(a), below(b))
        step("rename", below(a), To=below(b))


class Tuned(object):
    """A tuned that writes as the real one does: without a sync."""

    refused = staticmethod(lambda profile: None)
    active = staticmethod(lambda: host.live["tuned"])
    sysctls = staticmethod(lambda profile: {"net.a": "2"} if profile == "latency" else {})
    files = staticmethod(lambda profile: sorted(DISK))

    @staticmethod
    def apply(profile):
        for path, text in (("/etc/tuned/active_profile", profile + "\n"), ("/etc/default/grub", DISK["/etc/default/grub"] + ("" if profile == "balanced" else "# tuned\n"))):
            with open_below(path, "w") as f:
                f.write(text)
        host.live["tuned"] = profile
        host.live["sysctl net.a"] = Tuned.sysctls(profile).get("net.a", BOOTED["sysctl net.a"])
        return []


class Ended(Exception):
    pass


class Module(object):
    """AnsibleModule, with the arguments of the present command."""

    check_mode, asked = False, {}

    def __init__(self, argument_spec, supports_check_mode):
        self.params = dict((k, v.get("default")) for k, v in argument_spec.items())
        self.params.update(Module.asked, state_file=STATE)

    def exit_json(self, **_):
        raise Ended()

    def fail_json(self, msg, **_):
        raise RuntimeError(msg)


def load():
    """The module, with the host in place of the machine."""
    for name in ("ansible", "ansible.module_utils", "ansible_collections", "ansible_collections.cnibench", "ansible_collections.cnibench.testbed",
                 "ansible_collections.cnibench.testbed.plugins", "ansible_collections.cnibench.testbed.plugins.module_utils"):
        sys.modules[name] = types.ModuleType(name)
    basic = sys.modules["ansible.module_utils.basic"] = types.ModuleType("basic")
    basic.AnsibleModule = Module
    loaded = {}
    for folder, name in (("module_utils", "settings"), ("module_utils", "kept"), ("modules", "host_settings")):
        if name == "host_settings":
            utils = sys.modules["ansible_collections.cnibench.testbed.plugins.module_utils"]
            utils.settings, utils.tuned = loaded["settings"], Tuned
        module = types.ModuleType(name)
        with open(os.path.join(plugins, folder, name + ".py")) as f:
            exec(compile(f.read(), name + ".py", "exec"), module.__dict__)
        module.os, module.open = System, open_below
        sys.modules["ansible_collections.cnibench.testbed.plugins.module_utils." + name] = module
        loaded[name] = module
    settings, kept, main = loaded["settings"], loaded["kept"], loaded["host_settings"]
    read, refused, write = settings.read, settings.refused, settings.write
    settings.default_devices = lambda: []
    settings.read = lambda name: host.live.get(name) if name.startswith("sysctl") else read(name)
    settings.refused = lambda name, value: None if name.startswith("sysctl") else refused(name, value)

    def write_setting(name, value):
        if name.startswith("sysctl"):
            host.live[name] = value
        else:
            write(name, value)

    settings.write = write_setting
    kept.boot_id = lambda: host.boot
    return main


def boot(root, boot_id):
    host.root, host.boot, host.live = root, boot_id, dict(BOOTED)
    try:
        with open(below("/etc/tuned/active_profile")) as f:
            host.live["tuned"] = f.read().strip()
    except OSError:
        host.live["tuned"] = ""


def run(main, **asked):
    Module.asked = asked
    try:
        main.main()
    except Ended:
        return
    raise RuntimeError("the module did not say what it did")


def apply_first(main):
    run(main, state="applied", tuned="latency", sysctls={"net.b": "7"})


def wrong():
    """What is not as before."""
    found = []
    for path, text in DISK.items():
        with open(below(path)) as f:
            now = f.read()
        if now != text:
            found.append("%s is %r" % (path, now))
    found += ["%s is %s" % (k, host.live[k]) for k, v in BOOTED.items() if host.live[k] != v]
    if host.live["tuned"] != "balanced":
        found.append("tuned has the profile %r" % host.live["tuned"])
    if os.path.isdir(below(os.path.dirname(STATE))):
        found.append("left: %s" % os.listdir(below(os.path.dirname(STATE))))
    return found


def record(main, root):
    for path, text in DISK.items():
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with open(root + path, "w") as f:
            f.write(text)
    os.makedirs(root + "/var/lib")
    boot(root, "first")
    host.steps = []
    apply_first(main)
    if host.live["sysctl net.b"] != "7" or host.live["tuned"] != "latency" or not wrong():
        raise RuntimeError("the host is not tuned: %s" % host.live)
    run(main, state="applied", sysctls={"net.b": "8"})  # tuned is put back, the sysctl is not
    run(main, state="restored")
    if wrong():
        raise RuntimeError("without a loss of power: %s" % wrong())
    for s in host.steps:
        print(json.dumps(s))


def recover(main, folder):
    for name in sorted(os.listdir(folder)):
        for how in ("restored", "applied"):
            root = os.path.join(folder, name + "-" + how)
            shutil.copytree(os.path.join(folder, name), root)
            boot(root, "second")
            try:
                if how == "applied":
                    apply_first(main)
                run(main, state="restored")
                found = wrong()
            except Exception as e:
                found = ["%s: %s" % (type(e).__name__, e)]
            if found:
                print("%s, next command %s: %s" % (name, how, "; ".join(found)))
            shutil.rmtree(root)
    print("done")


if __name__ == "__main__":
    {"record": record, "recover": recover}[sys.argv[1]](load(), os.path.realpath(sys.argv[2]))
