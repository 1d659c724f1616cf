package gateway_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"skep/host"
	"skep/host/internal/gateway/iacp/iacptest"
	"skep/host/internal/guests"
)

// TestIACPPorts (I-050): of a range of ports the host listens on the first that is free, and names it;
// a range without a free port is refused with the setting.
func TestIACPPorts(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	_, text, _ := net.SplitHostPort(taken.Addr().String())
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	last := min(port+1000, 65535)
	if port == last {
		port-- // which is free or taken, and the next is taken
	}
	s, _ := newFramedSite(t, false, "LISTEN", fmt.Sprintf("127.0.0.1:%d-%d", port, last))
	list, err := s.As("a-key-of-the-operator").Gateways(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	addr, listens := strings.CutPrefix(list[0].Detail, "listens on ")
	if !listens || addr == taken.Addr().String() {
		t.Fatalf("the gateway %s", list[0].Detail)
	}
	c, err := iacptest.Dial(addr, "a-token-of-the-realm-depot")
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	alone := fmt.Sprintf("%s-%s", taken.Addr(), text)
	s.Write(strings.NewReplacer("LISTEN", alone, "CERTIFICATES", "", "TLS", "").Replace(framed))
	cfg, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	want := "listen on " + alone + " ([gateways.iacp] listen): "
	opt := host.Options{Config: cfg, DataDir: s.Data, CacheDir: guests.CacheDir(t), Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"}
	if h, err := host.New(t.Context(), opt); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without a free port: %v, %v; want %q", h, err, want)
	}
}
