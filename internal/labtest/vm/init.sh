#!/vm/busybox sh
# The first program of the virtual machine, in its initramfs: mounts the files of
# the machine outside, read-only, under a layer in memory that takes all writes,
# and goes on in there with run.sh.
bb=/vm/busybox
die() { echo "init: $*" >/dev/ttyS0; $bb sync; $bb poweroff -f; }

$bb mkdir -p /proc /sys /dev /host /layer /new
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev
exec </dev/null >/dev/ttyS0 2>&1

while read -r module; do
	$bb insmod "/modules/$module" || die "module $module"
done </modules/order

$bb mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=524288,cache=loose host /host || die "the machine's files"
$bb mount -t tmpfs -o size=90% layer /layer || die "a layer in memory"
$bb mkdir /layer/upper /layer/work
$bb mv /vm /layer/upper/vm
bb=/layer/upper/vm/busybox
$bb mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /new || die "the layer over the machine's files"
$bb umount /proc
$bb umount /sys
$bb mount --move /dev /new/dev || die "/dev"
exec $bb switch_root /new /vm/busybox sh /vm/run.sh
