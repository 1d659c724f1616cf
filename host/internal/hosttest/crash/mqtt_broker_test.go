package crash_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
)

// program finds a program of the distribution.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + name); err == nil {
			return path
		}
		if guests.ToolchainsRequired() {
			t.Fatal(err)
		}
		t.Skipf("no broker of MQTT is tried: %v", err)
	}
	return path
}

// mosquitto is a real broker, that is killed and started again on its files.
type mosquitto struct {
	t         *testing.T
	program   string
	dir, addr string
	cmd       *exec.Cmd
}

// mosquittoConf has a user for the host and one for the partner acme, and keeps each change.
const mosquittoConf = `listener PORT 127.0.0.1
allow_anonymous true
acl_file DIR/acl
persistence true
persistence_location DIR/
autosave_on_changes true
autosave_interval 1
USER
`

// mosquittoACL lets acme write what acme says, and nobody else.
const mosquittoACL = `user hive
topic read acp/v1/acme/+/out
topic write acp/v1/acme/+/in
user acme
topic write acp/v1/acme/+/out
topic read acp/v1/acme/+/in
`

func newMosquitto(t *testing.T) *mosquitto {
	t.Helper()
	b := &mosquitto{t: t, program: program(t, "mosquitto"), dir: t.TempDir(), addr: hosttest.FreeAddress(t, "127.0.0.1")}
	_, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		t.Fatal(err)
	}
	user := "" // of who runs the test
	if os.Getuid() == 0 {
		user = "user root"
	}
	for name, text := range map[string]string{
		"acl": mosquittoACL, "conf": strings.NewReplacer("PORT", port, "DIR", b.dir, "USER", user).Replace(mosquittoConf),
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.start()
	t.Cleanup(b.kill)
	return b
}

func (b *mosquitto) start() {
	b.t.Helper()
	b.cmd = exec.Command(b.program, "-c", filepath.Join(b.dir, "conf"))
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	hosttest.Eventually(b.t, "the broker serves", func() bool {
		conn, err := net.Dial("tcp", b.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func (b *mosquitto) kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// mqttPeer are the agents of acme at a broker. Each REQUEST that comes gets a RESPONSE.
type mqttPeer struct {
	t    *testing.T
	conn *broker.Conn

	mu  sync.Mutex
	got []acptest.Message
}

func newMQTTPeer(t *testing.T, at *mosquitto) *mqttPeer {
	t.Helper()
	p := &mqttPeer{t: t}
	p.conn = broker.New(broker.Options{
		URL: "mqtt://" + at.addr, ClientID: "acme", Username: "acme", Filter: "acp/v1/acme/+/in", Take: p.take, MaxMessage: 1 << 20, Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.conn.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	hosttest.Eventually(t, "acme is at the broker", func() bool { return p.conn.State() == nil })
	return p
}

// take takes a message, which it acknowledges after its answer is at the broker.
func (p *mqttPeer) take(ctx context.Context, m broker.Message) bool {
	got, err := acptest.Parse(m.Payload)
	if err != nil || m.Topic != "acp/v1/acme/"+got.Header.Receiver+"/in" {
		p.t.Errorf("at %s came %s: %v", m.Topic, m.Payload, err)
		return true
	}
	p.mu.Lock()
	p.got = append(p.got, got)
	p.mu.Unlock()
	if got.Header.Type != "REQUEST" {
		return true
	}
	answer := got.Reply("RESPONSE", "of "+got.Body)
	answer.Header.ID = "answer to " + got.Header.ID // the same for a repeat
	return p.publish(ctx, answer) == nil
}

func (p *mqttPeer) publish(ctx context.Context, m acptest.Message) error {
	_, err := p.conn.Publish(ctx, "acp/v1/acme/"+m.Header.Sender+"/out", "application/json", []byte(m.Text()))
	return err
}

// send publishes messages until the broker has each.
func (p *mqttPeer) send(list ...acptest.Message) {
	p.t.Helper()
	for _, m := range list {
		hosttest.Eventually(p.t, "the broker takes "+m.Header.ID, func() bool { return p.publish(p.t.Context(), m) == nil })
	}
}

// about are the messages that came with a reply_to, or with a body; of each id one.
func (p *mqttPeer) about(replyTo, body string) (list []acptest.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, m := range p.got {
		if (m.Header.ReplyTo == replyTo && replyTo != "" || m.Body == body && body != "") && !seen[m.Header.ID] {
			seen[m.Header.ID] = true
			list = append(list, m)
		}
	}
	return list
}

// answer waits for the one answer to a message.
func (p *mqttPeer) answer(to acptest.Message) acptest.Message {
	p.t.Helper()
	hosttest.Eventually(p.t, "an answer to "+to.Header.ID, func() bool { return len(p.about(to.Header.ID, "")) > 0 })
	list := p.about(to.Header.ID, "")
	if len(list) != 1 {
		p.t.Errorf("%s got %d answers: %+v", to.Header.ID, len(list), list)
	}
	return list[0]
}

// questions are REQUESTs that are like each other.
func questions(n int, what string) (list []acptest.Message) {
	for i := range n {
		q := acptest.New("REQUEST", "agentA", "boss", fmt.Sprintf("%s %d", what, i))
		q.Header.ID = fmt.Sprintf("%s-%d", what, i)
		list = append(list, q)
	}
	return list
}
