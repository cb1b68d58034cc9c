package netns

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ethtool requests that set and get one feature of a device
// (linux/ethtool.h).
const (
	ethtoolGTXCSUM, ethtoolSTXCSUM = 0x16, 0x17
	ethtoolGSG, ethtoolSSG         = 0x18, 0x19
	ethtoolGTSO, ethtoolSTSO       = 0x1e, 0x1f
	ethtoolGGSO, ethtoolSGSO       = 0x23, 0x24
)

// ethtoolValue is struct ethtool_value.
type ethtoolValue struct{ cmd, data uint32 }

// ethtoolRequest is struct ifreq with its ifr_data (netdevice(7)).
type ethtoolRequest struct {
	name [unix.IFNAMSIZ]byte
	data *ethtoolValue
	_    [16]byte
}

// OffloadsOff turns off on a device what lets the kernel send a packet with
// its checksum, or with its cutting into segments, still to be done, and reads
// each back: ethtool -K DEVICE tx off sg off tso off gso off.
func OffloadsOff(n NS, device string) error {
	return Do(n, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, f := range []struct {
			name     string
			get, set uint32
		}{
			{"gso", ethtoolGGSO, ethtoolSGSO}, {"tso", ethtoolGTSO, ethtoolSTSO},
			{"sg", ethtoolGSG, ethtoolSSG}, {"tx", ethtoolGTXCSUM, ethtoolSTXCSUM},
		} {
			if _, err := ethtool(fd, device, ethtoolValue{f.set, 0}); err != nil {
				return fmt.Errorf("offload %s of %s in %s: %w", f.name, device, n.Name, err)
			}
			is, err := ethtool(fd, device, ethtoolValue{f.get, 0})
			if err != nil {
				return fmt.Errorf("offload %s of %s in %s: %w", f.name, device, n.Name, err)
			}
			if is != 0 {
				return fmt.Errorf("offload %s of %s in %s stays on", f.name, device, n.Name)
			}
		}
		return nil
	})
}

func ethtool(fd int, device string, v ethtoolValue) (uint32, error) {
	req := ethtoolRequest{data: &v}
	if len(device) >= len(req.name) {
		return 0, unix.ENODEV
	}
	copy(req.name[:], device)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req)))
	if errno != 0 {
		return 0, errno
	}
	return v.data, nil
}
