package http3

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"skep/host/internal/api/listener"
)

// errFull refuses a connection.
var errFull = errors.New("too many connections")

// connLimiter counts connections from the first packet after their address was proven.
type connLimiter struct {
	limits listener.Limits

	mu         sync.Mutex
	open       int
	perNetwork map[netip.Prefix]int
}

func newConnLimiter(l listener.Limits) *connLimiter {
	return &connLimiter{limits: l, perNetwork: map[netip.Prefix]int{}}
}

// admit counts a connection until ctx ends, or returns why there is no place for it.
func (l *connLimiter) admit(ctx context.Context, from net.Addr) error {
	network := l.networkOf(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.limits.Connections; most > 0 && l.open >= most {
		return errFull
	}
	if most := l.limits.PerAddress; most > 0 && network.IsValid() && l.perNetwork[network] >= most {
		return errFull
	}
	l.open++
	l.perNetwork[network]++
	context.AfterFunc(ctx, func() { l.release(network) })
	return nil
}

func (l *connLimiter) release(network netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.perNetwork[network]--; l.perNetwork[network] == 0 {
		delete(l.perNetwork, network)
	}
}

func (l *connLimiter) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// networkOf is what a connection counts for, invalid for a proxy.
func (l *connLimiter) networkOf(from net.Addr) netip.Prefix {
	udp, ok := from.(*net.UDPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := udp.AddrPort().Addr().Unmap().WithZone("")
	for _, proxy := range l.limits.Proxies {
		if proxy.Contains(ip) {
			return netip.Prefix{}
		}
	}
	return listener.Network(ip)
}
