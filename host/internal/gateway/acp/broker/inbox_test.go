package broker

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
)

// TestInboxManyProperties: a message whose properties take more than the whole room is taken,
// and so is the one behind it.
func TestInboxManyProperties(t *testing.T) {
	t.Parallel()
	in := newInbox(1 << 10)
	many := &packets.Publish{QoS: 1, Topic: "x", Properties: &packets.Properties{User: make([]packets.User, 1000)}}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for _, p := range []*packets.Publish{many, {QoS: 1, Topic: "y", Properties: &packets.Properties{}}} {
		if err := in.push(paho.PublishFromPacketPublish(p)); err != nil {
			t.Fatal(err)
		}
		got, ok := in.pop(ctx)
		if !ok || got.Topic != p.Topic {
			t.Fatalf("got %+v", got)
		}
		in.release(got)
	}
}

// TestInboxForgets: after a backlog of many small messages no message stays in memory that was
// taken.
func TestInboxForgets(t *testing.T) {
	t.Parallel()
	in := newInbox(1 << 20)
	const backlog = 1000
	for range backlog {
		if err := in.push(&paho.Publish{QoS: 1, Topic: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	take := func() weak.Pointer[paho.Publish] {
		p, ok := in.pop(t.Context())
		if !ok {
			t.Fatal("a message is lost")
		}
		in.release(p)
		return weak.Make(p)
	}
	for range backlog {
		take()
	}
	for range 10 {
		if err := in.push(&paho.Publish{QoS: 1, Topic: "x", Payload: []byte(strings.Repeat("x", 1<<20))}); err != nil {
			t.Fatal(err)
		}
		taken := take()
		runtime.GC()
		if taken.Value() != nil {
			t.Fatal("a message that was taken is held")
		}
	}
	runtime.KeepAlive(in)
}
