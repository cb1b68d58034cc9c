//go:build linux

package agent

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ethtool requests that read a device's features and driver
// (linux/ethtool.h).
const (
	ethtoolGDrvInfo  = 0x03
	ethtoolGStrings  = 0x1b
	ethtoolGSSetInfo = 0x37
	ethtoolGFeatures = 0x3a
	ethSSFeatures    = 4
	ethGStringLen    = 32
	maxFeatures      = 1024
)

// offloadNames lists the features that change what packets look like between
// two stacks, in the kernel's own words (net/ethtool/common.c); ethtool -k
// groups some of them under older names.
func offloadNames() []string {
	return []string{
		"rx-gro", "rx-gro-list", "rx-gro-hw", "rx-lro", "rx-udp-gro-forwarding", "rx-checksum", "rx-vlan-hw-parse",
		"tx-generic-segmentation", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp-ecn-segmentation",
		"tx-udp-segmentation", "tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "tx-gre-segmentation", "tx-ipxip4-segmentation",
		"tx-scatter-gather", "tx-scatter-gather-fraglist", "tx-gso-list", "tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6", "tx-checksum-sctp",
		"hw-tc-offload",
	}
}

// ifreq is struct ifreq with its ifr_data (netdevice(7)).
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// offloads reads a device's features: name to "on" or "off".
func offloads(device string) (map[string]string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	// struct ethtool_sset_info: cmd, reserved, sset_mask (u64), one u32 each.
	info := make([]byte, 20)
	binary.NativeEndian.PutUint32(info, ethtoolGSSetInfo)
	binary.NativeEndian.PutUint64(info[8:], 1<<ethSSFeatures)
	if err := ethtool(fd, device, info); err != nil {
		return nil, err
	}
	n := int(binary.NativeEndian.Uint32(info[16:]))
	if n == 0 || n > maxFeatures {
		return nil, fmt.Errorf("%s reports %d features", device, n)
	}
	// struct ethtool_gstrings: cmd, string_set, len, the strings.
	names := make([]byte, 12+n*ethGStringLen)
	binary.NativeEndian.PutUint32(names, ethtoolGStrings)
	binary.NativeEndian.PutUint32(names[4:], ethSSFeatures)
	binary.NativeEndian.PutUint32(names[8:], uint32(n))
	if err := ethtool(fd, device, names); err != nil {
		return nil, err
	}
	// struct ethtool_gfeatures: cmd, size, blocks of {available, requested,
	// active, never_changed} for 32 features each.
	blocks := (n + 31) / 32
	features := make([]byte, 8+blocks*16)
	binary.NativeEndian.PutUint32(features, ethtoolGFeatures)
	binary.NativeEndian.PutUint32(features[4:], uint32(blocks))
	if err := ethtool(fd, device, features); err != nil {
		return nil, err
	}
	return featureStates(names[12:], features[8:], n), nil
}

// driver is what drives a device, "veth".
func driver(device string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	// struct ethtool_drvinfo: cmd, driver[32], and 160 bytes more.
	info := make([]byte, 196)
	binary.NativeEndian.PutUint32(info, ethtoolGDrvInfo)
	err = ethtool(fd, device, info)
	return unix.ByteSliceToString(info[4:36]), err
}

func featureStates(names, features []byte, n int) map[string]string {
	wanted := map[string]bool{}
	for _, name := range offloadNames() {
		wanted[name] = true
	}
	states := map[string]string{}
	for i := range n {
		name := unix.ByteSliceToString(names[i*ethGStringLen : (i+1)*ethGStringLen])
		if !wanted[name] {
			continue
		}
		active := binary.NativeEndian.Uint32(features[i/32*16+8:])
		states[name] = "off"
		if active&(1<<(i%32)) != 0 {
			states[name] = "on"
		}
	}
	return states
}

func ethtool(fd int, device string, request []byte) error {
	var r ifreq
	copy(r.name[:unix.IFNAMSIZ-1], device)
	var pin runtime.Pinner
	pin.Pin(&request[0])
	defer pin.Unpin()
	r.data = unsafe.Pointer(&request[0])
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return fmt.Errorf("ethtool %s: %w", device, errno)
	}
	return nil
}
