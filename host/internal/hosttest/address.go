package hosttest

import (
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
)

// Ports of [FreeAddress]. They lie below the ports that the kernel gives to others between
// the choice of a port and its use
// (https://docs.kernel.org/networking/ip-sysctl.html, ip_local_port_range).
const (
	firstPort  = 10_000
	blockPorts = 200
	portBlocks = 100
)

// portChooser gives out ports of a block that no other process of tests has.
type portChooser struct {
	mu sync.Mutex
	// locks are listeners on the first ports of blocks, which the process keeps to its end.
	locks []net.Listener
	// block is the last of them, used the last port of it that was given out.
	block, used int
}

// ports are the ports of this test binary.
var ports portChooser

// FreeAddress returns an address at a loopback IP without a listener, which no other test
// is given, in this process or in another one.
func FreeAddress(t *testing.T, ip string) string {
	t.Helper()
	address, err := ports.free(ip)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func (p *portChooser) free(ip string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range blockPorts {
		if err := p.next(); err != nil {
			return "", err
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip, fmt.Sprint(firstPort+p.block*blockPorts+p.used)))
		if err == nil {
			defer l.Close()
			return l.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("no free address of %s was found", ip)
}

// next goes to the next port, at the end of a block to the first of another one.
func (p *portChooser) next() error {
	if p.used++; len(p.locks) > 0 && p.used < blockPorts {
		return nil
	}
	for n := range portBlocks {
		block := (os.Getpid() + n) % portBlocks
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+block*blockPorts))
		if err == nil {
			p.locks, p.block, p.used = append(p.locks, l), block, 1
			return nil
		}
	}
	return fmt.Errorf("no block of ports from %d on is free", firstPort)
}
