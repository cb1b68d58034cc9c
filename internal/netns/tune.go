package netns

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ethtool requests of generic receive offload and of rings
// (linux/ethtool.h); those of other offloads are next to OffloadsOff.
const (
	ethtoolGGRO, ethtoolSGRO             = 0x2b, 0x2c
	ethtoolGRingParam, ethtoolSRingParam = 0x10, 0x11
)

// TrySysctl writes a setting in the namespace and gives what is in force there
// afterwards, as far as it can be read. The error says why it did not take:
// fs.ErrNotExist where the namespace has no such setting, fs.ErrPermission
// where it only shows the machine's.
func TrySysctl(n NS, s Setting) (value string, err error) {
	doErr := Do(n, func() error {
		err = setSysctl(s)
		value, _ = readSysctl(s.Path) // err has said that it does not exist
		return nil
	})
	if doErr != nil {
		err = doErr
	}
	return value, err
}

// Offload reports whether an offload of the device is on: "gro", "gso", "tso",
// "sg" or "tx", as ethtool -K names them.
func (p Port) Offload(name string) (on bool, err error) {
	get, _, err := offloadRequests(name)
	if err != nil {
		return false, err
	}
	err = p.withSocket(func(fd int) error {
		v, err := ethtool(fd, p.Device, ethtoolValue{cmd: get})
		on = v != 0
		return err
	})
	return on, err
}

// SetOffload turns an offload on or off. It must be read back: a driver may
// answer yes and leave it as it is.
func (p Port) SetOffload(name string, on bool) error {
	_, set, err := offloadRequests(name)
	if err != nil {
		return err
	}
	v := ethtoolValue{cmd: set}
	if on {
		v.data = 1
	}
	return p.withSocket(func(fd int) error {
		_, err := ethtool(fd, p.Device, v)
		return err
	})
}

func offloadRequests(name string) (get, set uint32, err error) {
	switch name {
	case "gro":
		return ethtoolGGRO, ethtoolSGRO, nil
	case "gso":
		return ethtoolGGSO, ethtoolSGSO, nil
	case "tso":
		return ethtoolGTSO, ethtoolSTSO, nil
	case "sg":
		return ethtoolGSG, ethtoolSSG, nil
	case "tx":
		return ethtoolGTXCSUM, ethtoolSTXCSUM, nil
	}
	return 0, 0, fmt.Errorf("unknown offload %q (known: gro, gso, tso, sg, tx)", name)
}

// Rings are the sizes of a device's rings in packets, and the largest that it
// takes.
type Rings struct{ RX, TX, MaxRX, MaxTX int }

// ringParam is struct ethtool_ringparam.
type ringParam struct {
	cmd                                 uint32
	rxMax, rxMiniMax, rxJumboMax, txMax uint32
	rx, rxMini, rxJumbo, tx             uint32
}

// Rings reads the device's rings. A device without any, as veth is, gives
// unix.EOPNOTSUPP.
func (p Port) Rings() (Rings, error) {
	r := ringParam{cmd: ethtoolGRingParam}
	err := p.withSocket(func(fd int) error { return ringRequest(fd, p.Device, &r) })
	return Rings{RX: int(r.rx), TX: int(r.tx), MaxRX: int(r.rxMax), MaxTX: int(r.txMax)}, err
}

// SetRings sets the sizes of both rings; 0 leaves one as it is.
func (p Port) SetRings(rx, tx int) error {
	return p.withSocket(func(fd int) error {
		r := ringParam{cmd: ethtoolGRingParam}
		if err := ringRequest(fd, p.Device, &r); err != nil {
			return err
		}
		r.cmd = ethtoolSRingParam
		if rx > 0 {
			r.rx = uint32(rx)
		}
		if tx > 0 {
			r.tx = uint32(tx)
		}
		return ringRequest(fd, p.Device, &r)
	})
}

func ringRequest(fd int, device string, r *ringParam) error {
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	if len(device) >= len(req.name) {
		return unix.ENODEV
	}
	copy(req.name[:], device)
	var pin runtime.Pinner
	pin.Pin(r)
	defer pin.Unpin()
	req.data = unsafe.Pointer(r)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return errno
	}
	return nil
}

// withSocket runs f with a socket in the port's namespace, through which
// devices there can be asked.
func (p Port) withSocket(f func(fd int) error) error {
	return Do(p.NS, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return f(fd)
	})
}
