package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// WireGuard is one node's end of WireGuard in user space (wireguard-go). Its keys and peers
// are not in it: they come by Serve's reader, so that no list of processes shows them.
type WireGuard struct {
	Device string `json:"device"` // of the tun device, which lives as long as Serve
	MTU    int    `json:"mtu"`    // of Device, bytes
	// Counters is the name of an abstract socket of the network namespace, at which each
	// connection is answered with WireGuardCounters. It exists once packets can be taken.
	Counters string `json:"counters"`
}

// WireGuardCounters are the bytes of UDP payload that a node has exchanged with all its
// peers: encrypted packets and handshakes.
type WireGuardCounters struct {
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
}

// Arg is the configuration as an argument of a program.
func (w WireGuard) Arg() (string, error) {
	b, err := json.Marshal(map[string]WireGuard{"wireguard": w})
	return string(b), err
}

// Serve encrypts and decrypts until ctx ends. config has keys and peers, as WireGuard's
// cross-platform interface has them (https://www.wireguard.com/xplatform), and is read to
// its end.
func (w WireGuard) Serve(ctx context.Context, config io.Reader) error {
	file, err := openWireGuard(w.Device)
	if err != nil {
		return fmt.Errorf("tun device %s: %w", w.Device, err)
	}
	wire, err := tun.CreateTUNFromFile(file, w.MTU)
	if err != nil {
		return errors.Join(fmt.Errorf("tun device %s: %w", w.Device, err), file.Close())
	}
	logger := &device.Logger{Verbosef: device.DiscardLogf, Errorf: log.New(os.Stderr, "wireguard-go: ", 0).Printf}
	dev := device.NewDevice(wire, conn.NewDefaultBind(), logger)
	defer dev.Close()
	if err := dev.IpcSetOperation(config); err != nil {
		return errors.New("WireGuard's configuration was refused") // the library's error may quote it
	}
	if err := dev.Up(); err != nil {
		return fmt.Errorf("WireGuard: %w", err)
	}
	l, err := net.Listen("unix", "@"+w.Counters)
	if err != nil {
		return err
	}
	defer l.Close()
	go tellCounters(l, dev)
	select {
	case <-ctx.Done():
		return nil
	case <-dev.Wait():
		return errors.New("WireGuard's device is gone")
	}
}

// openWireGuard makes the device and sets it up: wireguard-go closes its socket while its
// device is down, and what the other node sends then would be lost.
func openWireGuard(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err == nil {
		err = deviceUp(name)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

func deviceUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	req.SetUint16(req.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// tellCounters answers until the listener is closed.
func tellCounters(l net.Listener, dev *device.Device) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(time.Second)) // who does not read gets nothing
		if state, err := dev.IpcGet(); err == nil {
			_ = json.NewEncoder(c).Encode(countersIn(state))
		}
		_ = c.Close()
	}
}

// countersIn sums the counters of all peers in a state as the cross-platform interface
// gives it, which has the private key too: nothing else of it is passed on.
func countersIn(state string) WireGuardCounters {
	var c WireGuardCounters
	for line := range strings.Lines(state) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case err != nil:
		case key == "tx_bytes":
			c.Sent += n
		case key == "rx_bytes":
			c.Received += n
		}
	}
	return c
}
