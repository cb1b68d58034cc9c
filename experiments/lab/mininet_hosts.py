"""Brings N Mininet hosts up on one Linux bridge and down again, and prints the
two times in seconds. It is run in a network namespace of its own."""

import sys
import time

import mininet.net
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
from mininet.topo import SingleSwitchTopo

# Mininet.init raises limits of the whole machine (kernel.pty.max, fs.file-max).
Mininet.inited = True
setLogLevel("error")

begin = time.monotonic()
net = Mininet(topo=SingleSwitchTopo(int(sys.argv[1])), switch=LinuxBridge, controller=None)
net.start()
up = time.monotonic() - begin
# That they exist is checked outside of the time taken.
reached = net.hosts[0].cmd("ip -4 -o addr show dev %s" % net.hosts[0].defaultIntf())
begin = time.monotonic()
net.stop()
down = time.monotonic() - begin
if "inet " not in reached:
    sys.exit("the first host has no address: %r" % reached)
print(up, down)
