# The first program once the machine's files are mounted: makes what a program
# expects, runs it with its output on the second serial line, and goes off.
bb=/vm/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
off() { $bb sync; $bb poweroff -f; }
die() { echo "run: $*" >/dev/ttyS0; off; }

exec </dev/null >/dev/ttyS0 2>&1
$bb mount -t proc proc /proc || die /proc
$bb mount -t sysfs sysfs /sys || die /sys
$bb mount -t tmpfs -o mode=755 run /run || die /run
$bb mkdir -p /dev/pts /dev/shm /run/netns
$bb mount -t devpts devpts /dev/pts || die /dev/pts
$bb mount -t tmpfs shm /dev/shm || die /dev/shm
$bb mount -t cgroup2 cgroup2 /sys/fs/cgroup || die /sys/fs/cgroup
# As systemd does for what it starts: a cgroup may use its controllers.
for controller in $($bb cat /sys/fs/cgroup/cgroup.controllers); do
	echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control || die "controller $controller"
done
$bb mount -t bpf bpf /sys/fs/bpf || die /sys/fs/bpf
$bb mount -t tracefs tracefs /sys/kernel/tracing || die /sys/kernel/tracing

# The kernel asks modprobe for what it lacks and looks for it where modules are.
version=$($bb cat /vm/version)
$bb mkdir -p "/lib/modules/$version"
$bb mount --bind "$($bb cat /vm/modules)/$version" "/lib/modules/$version" || die "the kernel's modules"
# As Kubernetes asks for, and what udev would: nothing else loads them.
modprobe -a br_netfilter tun || die "modules br_netfilter, tun"

$bb ip link set lo up
$bb hostname cnibench-vm
$bb stty -F /dev/ttyS1 raw -echo
cd "$($bb cat /vm/dir)" || die "the program's folder"
$bb sh /vm/command.sh >/dev/ttyS1 2>&1
printf '\036vm: exit status %s\n' $? >/dev/ttyS1
off
