package netns

import (
	"errors"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ESP is IPsec's encryption by the kernel, with AES-GCM, and the counters by which a sample
// verifies it.
func ESP() Feature { return esp("ESP", "esp4", "CONFIG_INET_ESP", "198.18.0.1", "198.18.0.2") }

// ESP6 is ESP in IPv6.
func ESP6() Feature {
	return esp("ESP for IPv6", "esp6", "CONFIG_INET6_ESP", "fd00:198:18::1", "fd00:198:18::2")
}

// esp tries to make a security association: a kernel without ESP, or without IPsec, says
// EPROTONOSUPPORT, and one without AES-GCM ENOSYS or ENOENT.
func esp(name, module, config, from, to string) Feature {
	return Feature{Name: name, Doc: "encryption between nodes (ipsec)", Cure: cureByModule(module, config+", CONFIG_CRYPTO_GCM and CONFIG_XFRM_STATISTICS"), Probe: func() error {
		return throwaway(func() error {
			err := netlink.XfrmStateAdd(&netlink.XfrmState{
				Src: net.ParseIP(from), Dst: net.ParseIP(to), Proto: netlink.XFRM_PROTO_ESP, Mode: netlink.XFRM_MODE_TRANSPORT, Spi: 0x1000,
				Aead: &netlink.XfrmStateAlgo{Name: "rfc4106(gcm(aes))", Key: make([]byte, 20), ICVLen: 128},
			})
			if err == nil {
				_, err = os.Stat("/proc/thread-self/net/xfrm_stat")
			}
			if errors.Is(err, os.ErrNotExist) {
				err = unix.ENOENT
			}
			return missingIf(name, err, unix.EPROTONOSUPPORT, unix.ENOSYS, unix.ENOENT)
		})
	}}
}
