# Copyright: the cnibench authors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Reads and writes single settings of a Linux host, by name.

A setting's name is "sysctl net.ipv4.tcp_sack", "offload eth0 gro",
"ring eth0 rx", "mtu eth0" or "file /sys/kernel/mm/transparent_hugepage/enabled". Devices are asked by ioctl, so that neither
ethtool nor a /sys of the right network namespace is needed.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import array
import errno
import fcntl
import os
import socket
import struct

SIOCETHTOOL, SIOCGIFMTU, SIOCSIFMTU = 0x8946, 0x8921, 0x8922
# linux/ethtool.h: the requests that get and set one offload, and the rings.
OFFLOADS = {
    "gro": (0x2B, 0x2C),
    "gso": (0x23, 0x24),
    "tso": (0x1E, 0x1F),
    "sg": (0x18, 0x19),
    "tx": (0x16, 0x17),
}
GET_RINGS, SET_RINGS = 0x10, 0x11
# struct ethtool_ringparam: cmd, the four largest sizes, the four sizes.
RING_MAX, RING_NOW = {"rx": 1, "tx": 4}, {"rx": 5, "tx": 8}


class NotTaken(Exception):
    """A setting did not take; the text says why."""


def ethtool(device, words):
    """Sends one request of 32-bit words and gives the answer."""
    buffer = array.array("I", words)
    address = buffer.buffer_info()[0]
    request = struct.pack("16sP16x", device.encode(), address)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        fcntl.ioctl(sock, SIOCETHTOOL, request)
    finally:
        sock.close()
    return list(buffer)


def mtu(device, value=None):
    request = struct.pack("16si12x", device.encode(), value or 0)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        answer = fcntl.ioctl(sock, SIOCSIFMTU if value else SIOCGIFMTU, request)
    finally:
        sock.close()
    return struct.unpack("16si12x", answer)[1]


def default_devices():
    """The device of the default route, where there is one."""
    with open("/proc/net/route") as f:
        for line in f.readlines()[1:]:
            words = line.split()
            if words[1] == "00000000" and words[7] == "00000000":
                return [words[0]]
    return []


def contents(path):
    """A file's text. One of the kernel's that shows all choices has the value in
    brackets."""
    with open(path) as f:
        text = f.read()
    if not path.startswith("/sys/"):
        return text
    text = text.rstrip("\n")
    if "[" in text and "]" in text:
        return text[text.index("[") + 1:text.index("]")]
    return text


def sysctl_path(name):
    return os.path.join("/proc/sys", name.replace(".", "/"))


def read(name):
    """The value in force as text, or None where it cannot be read."""
    words = name.split()
    try:
        if words[0] == "sysctl":
            with open(sysctl_path(words[1])) as f:
                return " ".join(f.read().split())
        if words[0] == "file":
            return contents(words[1])
        if words[0] == "offload":
            return "on" if ethtool(words[1], [OFFLOADS[words[2]][0], 0])[1] else "off"
        if words[0] == "ring":
            return str(ethtool(words[1], [GET_RINGS] + [0] * 8)[RING_NOW[words[2]]])
        if words[0] == "mtu":
            return str(mtu(words[1]))
    except (OSError, IOError):
        return None
    raise ValueError("no setting is called %r" % name)


def refused(name, value):
    """Why a setting cannot be written, as far as can be known before: or None."""
    words = name.split()
    if words[0] == "sysctl":
        if not os.path.exists(sysctl_path(words[1])):
            return "this kernel, or this network namespace, has no such setting"
        if not os.access(sysctl_path(words[1]), os.W_OK):
            return "it is read-only here"
    elif words[0] == "file":
        return None if os.access(words[1], os.W_OK) else "it is read-only here"
    elif read(name) is None:
        return "%s does not have it" % words[1]
    elif words[0] == "ring":
        most = ethtool(words[1], [GET_RINGS] + [0] * 8)[RING_MAX[words[2]]]
        if int(value) > most:
            return "%s takes at most %d" % (words[1], most)
    return None


def write(name, value):
    """Writes a setting and reads it back; NotTaken says why it is not as asked."""
    words = name.split()
    why = refused(name, value)
    if why:
        raise NotTaken(why)
    try:
        if words[0] in ("sysctl", "file"):
            with open(sysctl_path(words[1]) if words[0] == "sysctl" else words[1], "w") as f:
                f.write(value)
        elif words[0] == "offload":
            ethtool(words[1], [OFFLOADS[words[2]][1], 1 if value == "on" else 0])
        elif words[0] == "ring":
            rings = ethtool(words[1], [GET_RINGS] + [0] * 8)
            rings[0], rings[RING_NOW[words[2]]] = SET_RINGS, int(value)
            ethtool(words[1], rings)
        else:
            mtu(words[1], int(value))
    except (OSError, IOError) as e:
        if e.errno == errno.EOPNOTSUPP:
            raise NotTaken("%s does not have it" % words[1])
        raise NotTaken("the kernel refused it: %s" % e.strerror)
    if read(name) != value:
        raise NotTaken("the kernel took it and left it as it was")
