package acp

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
)

// refusingBroker serves one connection: it brings a text that is no message, and refuses what the
// host sends as its access list would.
func refusingBroker(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		got, err := packets.ReadPacket(conn)
		if err != nil {
			return
		}
		switch p := got.Content.(type) {
		case *packets.Connect:
			_, _ = (&packets.Connack{Properties: &packets.Properties{}}).WriteTo(conn)
		case *packets.Subscribe:
			_, _ = (&packets.Suback{PacketID: p.PacketID, Reasons: []byte{1}, Properties: &packets.Properties{}}).WriteTo(conn)
			_, _ = (&packets.Publish{PacketID: 1, QoS: 1, Topic: "t/agentA/out", Payload: []byte("no message"), Properties: &packets.Properties{}}).WriteTo(conn)
		case *packets.Publish:
			_, _ = (&packets.Puback{PacketID: p.PacketID, ReasonCode: packets.PubackNotAuthorized, Properties: &packets.Properties{}}).WriteTo(conn)
		}
	}
}

// logText is a log that a test waits for.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen chan struct{}
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(string(p), "does not take a message") && strings.Contains(string(p), "t/agentA/in") && strings.Contains(string(p), "partner=acme") {
		select {
		case l.seen <- struct{}{}:
		default:
		}
	}
	return l.text.Write(p)
}

// TestQueueRefusedByBroker: an ERROR that the broker refuses, as by its access list, holds the
// partner's messages, and the log has why.
func TestQueueRefusedByBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		refusingBroker(l)
	}()
	rt := gatewaytest.New()
	t.Cleanup(rt.Close)
	p := gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"agent*"}, May: gateway.Rights{gateway.MayAsk}, Options: map[string]any{topicsOption: "t"}}
	rt.AddPartner(p)
	log := &logText{seen: make(chan struct{}, 1)}
	g := New(Options{Runtime: rt, Log: slog.New(slog.NewTextHandler(log, nil)), MQTT: &MQTT{
		URL: "mqtt://" + l.Addr().String(), ClientID: "c", Partners: func() []gateway.Partner { return []gateway.Partner{p} },
	}})
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		g.runQueues(ctx)
	}()
	select {
	case <-log.seen:
	case <-time.After(time.Minute):
		t.Errorf("the log has\n%s", &log.text)
	}
	stop()
	<-ran
	_ = l.Close()
	<-served
}
