# Copyright: the cnibench authors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""tuned: which profile is active, what one would change, and another one.

Where tuned runs already it is asked by tuned-adm. Where it does not, one of our
own is started with a profile and without D-Bus; it puts its changes back when
it is ended.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import signal
import subprocess
import time

from ansible_collections.cnibench.testbed.plugins.module_utils.settings import NotTaken

FOLDERS = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"]
PID_FILE, LOG_FILE = "/run/tuned/tuned.pid", "/var/log/tuned/tuned.log"
ACTIVE_FILE = "/etc/tuned/active_profile"
# What tuned writes that outlives it and a reboot.
STAYING = [ACTIVE_FILE, "/etc/tuned/profile_mode", "/etc/tuned/post_loaded_profile", "/etc/tuned/bootcmdline", "/etc/default/grub"]
WAIT = 60  # seconds


def program(name):
    for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        if os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    return None


def slurp(path):
    try:
        with open(path) as f:
            return f.read()
    except (OSError, IOError):
        return ""


def pid():
    """The process of a running tuned, or None."""
    text = slurp(PID_FILE).strip()
    if text.isdigit() and "tuned" in slurp("/proc/%s/cmdline" % text):
        return int(text)
    return None


def ours():
    """Whether the one that runs is one that apply started."""
    return pid() is not None and "--no-dbus" in slurp("/proc/%d/cmdline" % pid())


def active():
    """The active profile, "off" where tuned does not run, None without tuned."""
    if program("tuned") is None:
        return None
    if pid() is None:
        return "off"
    return slurp(ACTIVE_FILE).strip() or "off"


def find(profile):
    for folder in FOLDERS:
        path = os.path.join(folder, profile, "tuned.conf")
        if os.path.exists(path):
            return path
    return None


def refused(profile):
    if program("tuned") is None:
        return "tuned is not installed (Debian: apt-get install tuned)"
    if profile != "off" and find(profile) is None:
        return "the tuned that is installed has no profile of this name"
    return None


def sections(profile, seen=()):
    """A profile's sections with those of the profiles that it includes."""
    merged = {}
    path = find(profile)
    if path is None or profile in seen:
        return merged
    own, name = {}, ""
    for line in slurp(path).splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
        elif "=" in line and not line.startswith(("#", ";")):
            key, value = line.split("=", 1)
            own.setdefault(name, {})[key.strip()] = value.strip()
    for base in own.get("main", {}).get("include", "").replace(",", " ").split():
        for section, values in sections(base, seen + (profile,)).items():
            merged.setdefault(section, {}).update(values)
    for section, values in own.items():
        merged.setdefault(section, {}).update(values)
    return merged


def sysctls(profile):
    """What the profile asks of sysctls: values by name. A value that tuned
    computes is None."""
    asked = {}
    for name, value in sections(profile).get("sysctl", {}).items():
        value = " ".join(value.strip('"').split())
        asked[name.replace("/", ".")] = None if "$" in value else value
    return asked


def files(profile):
    """The files that the profile may change in addition to sysctls."""
    every = sections(profile)
    found = list(STAYING)
    if "transparent_hugepages" in every.get("vm", {}) or "transparent_hugepage" in every.get("vm", {}):
        found.append("/sys/kernel/mm/transparent_hugepage/enabled")
    if "cpu" in every:
        base = "/sys/devices/system/cpu"
        for cpu in sorted(os.listdir(base)):
            for name in ("cpufreq/scaling_governor", "cpufreq/energy_performance_preference", "power/energy_perf_bias"):
                found.append(os.path.join(base, cpu, name))
    if "readahead" in every.get("disk", {}):
        for disk in sorted(os.listdir("/sys/block")):
            found.append("/sys/block/%s/queue/read_ahead_kb" % disk)
    return [f for f in found if os.path.isfile(f) and os.access(f, os.W_OK)]


def stop():
    running = pid()
    if running is None:
        return
    os.kill(running, signal.SIGTERM)
    deadline = time.time() + WAIT
    while os.path.exists("/proc/%d" % running):
        if time.time() > deadline:
            os.kill(running, signal.SIGKILL)
            raise NotTaken("tuned did not end within %d s, and was killed" % WAIT)
        time.sleep(0.05)


def start(profile):
    seen = len(slurp(LOG_FILE))
    subprocess.check_output([program("tuned"), "--no-dbus", "--daemon", "--profile", profile], stderr=subprocess.STDOUT)
    deadline = time.time() + WAIT
    while "static tuning from profile" not in slurp(LOG_FILE)[seen:]:
        if time.time() > deadline or pid() is None and time.time() > deadline - WAIT + 5:
            raise NotTaken("tuned did not apply it within %d s: see %s" % (WAIT, LOG_FILE))
        time.sleep(0.05)
    return slurp(LOG_FILE)[seen:]


def apply(profile):
    """Makes a profile the active one and gives what tuned complained of."""
    why = refused(profile)
    if why:
        raise NotTaken(why)
    try:
        if pid() is not None and not ours():  # it runs on, as it did before
            seen = len(slurp(LOG_FILE))
            words = ["off"] if profile == "off" else ["profile"] + profile.split()
            subprocess.check_output([program("tuned-adm")] + words, stderr=subprocess.STDOUT)
            log = slurp(LOG_FILE)[seen:]
        elif profile == "off":
            stop()
            return []
        else:
            stop()
            log = start(profile)
    except subprocess.CalledProcessError as e:
        raise NotTaken("tuned refused it: " + " ".join(e.output.decode("utf-8", "replace").split())[-300:])
    if active() != profile:
        raise NotTaken("tuned says that %s is active" % active())
    return complaints(log, profile)


def hdparm(profile):
    """Whether a profile asks for what tuned sets with hdparm."""
    return any(set(sections(name).get("disk", {})) & {"apm", "spindown"} for name in profile.split())


def complaints(log, profile):
    """What tuned's log says did not work for a profile, without its times.

    tuned's disk plugin warns of a missing hdparm for every profile with a section for
    disks, also for those that only set a readahead, which needs no hdparm.
    """
    found = []
    for line in log.splitlines():
        for level in (" ERROR ", " WARNING "):
            if level in line and not ("hdparm command not found" in line and not hdparm(profile)):
                found.append(" ".join(line.split(level, 1)[1].split()))
    return found
