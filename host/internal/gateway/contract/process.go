package contract

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"skep/host"
	"skep/host/client"
	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/guests"
	"skep/host/internal/hosttest"
	"skep/host/internal/swarm"
)

// Variables of the process of a host that is killed: its directory, its address, the
// compiled modules, and the name of its protocol.
const (
	dirEnv      = "SKEP_TEST_CONTRACT_DIR"
	addressEnv  = "SKEP_TEST_CONTRACT_ADDRESS"
	cacheEnv    = "SKEP_TEST_CONTRACT_CACHE"
	protocolEnv = "SKEP_TEST_CONTRACT_PROTOCOL"
)

// Main is for the TestMain of a package that calls [Run]: the test binary is also the
// process of a host that is killed. It returns in the process of the tests.
func Main(list ...Protocol) {
	dir := os.Getenv(dirEnv)
	if dir == "" {
		return
	}
	for _, p := range list {
		if p.Name == os.Getenv(protocolEnv) {
			fmt.Fprintln(os.Stderr, runProcess(p, dir))
		}
	}
	os.Exit(1)
}

// runProcess runs a host until it is killed.
func runProcess(p Protocol, dir string) error {
	cfg, err := load(p, dir)()
	if err != nil {
		return err
	}
	opt := options(p, dir, cfg)
	opt.Listen, opt.AdminListen, opt.CacheDir = os.Getenv(addressEnv), "off", os.Getenv(cacheEnv)
	opt.Logger = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opt.Runtime = func(_ string, rt gateway.Runtime) gateway.Runtime { return &killed{Runtime: rt, dir: dir} }
	h, err := host.New(context.Background(), opt)
	if err != nil {
		return err
	}
	return h.Run(context.Background())
}

// killed is a runtime that kills its process at a point, once: where the name of the point
// stands in a message.
type killed struct {
	gateway.Runtime
	dir    string
	dying  sync.Mutex
	writes atomic.Int32
}

// at kills the process if a text names the point, and no life before died there.
func (k *killed) at(point, text string) {
	if !strings.Contains(text, killMark+point) {
		return
	}
	k.dying.Lock() // nobody passes the point while the process is killed for another
	defer k.dying.Unlock()
	f, err := os.OpenFile(filepath.Join(k.dir, point), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return // it died there already
	}
	_ = f.Close()
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// killMark begins the name of a point in a message.
const killMark = "kill-at-"

// about is what names the point of a message.
func about(a gateway.Ask) string {
	if a.Of != nil {
		return a.Of.Wrapper.Payload.Body
	}
	return a.Conversation
}

// Ask is gateway.Runtime's.
func (k *killed) Ask(ctx context.Context, c gateway.Caller, a gateway.Ask) (gateway.Exchange, error) {
	before, after := "read", "accepted"
	if a.Of != nil {
		before, after = "answer-read", "answer-accepted"
	}
	k.at(before, about(a))
	x, err := k.Runtime.Ask(ctx, c, a)
	k.at(after, about(a))
	return x, err
}

// Asked is gateway.Runtime's: an answer that leaves as a message of its own is about its question.
func (k *killed) Asked(ctx context.Context, c gateway.Caller, d swarm.Delivery) (gateway.Exchange, error) {
	x, err := k.Runtime.Asked(ctx, c, d)
	k.at("committed", x.Conversation)
	return x, err
}

// Wait is gateway.Runtime's.
func (k *killed) Wait(ctx context.Context, x gateway.Exchange) (gateway.Answer, error) {
	a, err := k.Runtime.Wait(ctx, x)
	k.at("committed", x.Conversation)
	return a, err
}

// Follow is gateway.Runtime's: a stream ends with the answer.
func (k *killed) Follow(ctx context.Context, x gateway.Exchange, from int64) (gateway.Stream, error) {
	s, err := k.Runtime.Follow(ctx, x, from)
	if err != nil {
		return nil, err
	}
	return killedStream{s, k, x.Conversation}, nil
}

// FollowWhole is gateway.Runtime's: a stream ends with the answer.
func (k *killed) FollowWhole(ctx context.Context, x gateway.Exchange) (gateway.Stream, error) {
	s, err := k.Runtime.FollowWhole(ctx, x)
	if err != nil {
		return nil, err
	}
	return killedStream{s, k, x.Conversation}, nil
}

type killedStream struct {
	gateway.Stream
	k            *killed
	conversation string
}

// Next is gateway.Stream's.
func (s killedStream) Next(ctx context.Context) (gateway.Piece, error) {
	p, err := s.Stream.Next(ctx)
	if p.Kind == gateway.End {
		s.k.at("committed", s.conversation)
	}
	return p, err
}

// State is gateway.Runtime's: the second record of a message under way is its stream's.
func (k *killed) State() state.Store { return killedState{k.Runtime.State(), k} }

type killedState struct {
	state.Store
	k *killed
}

// Put is state.Store's. A file asks for the kill, since a record does not name the message.
func (s killedState) Put(ctx context.Context, r state.Record) (int64, error) {
	if _, err := os.Stat(filepath.Join(s.k.dir, "armed")); err == nil && s.k.writes.Add(1) == 2 {
		s.k.at("stream", killMark+"stream")
	}
	return s.Store.Put(ctx, r)
}

// process is a host in a process of its own.
type process struct {
	p    Protocol
	dir  string
	addr string
	cmd  *exec.Cmd
	over chan struct{}
	log  *os.File
}

func newProcess(t *testing.T, p Protocol, dir string) *process {
	t.Helper()
	h := &process{p: p, dir: dir, addr: hosttest.FreeAddress(t, "127.0.0.1")}
	var err error
	if h.log, err = os.Create(filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.kill()
		_ = h.log.Close()
		if raw, err := os.ReadFile(h.log.Name()); t.Failed() && err == nil {
			t.Logf("the host has written:\n%s", raw)
		}
	})
	return h
}

// start starts the host and waits until it serves.
func (h *process) start(t *testing.T) {
	t.Helper()
	h.cmd, h.over = exec.Command("/proc/self/exe"), make(chan struct{})
	h.cmd.Env = append(os.Environ(), dirEnv+"="+h.dir, addressEnv+"="+h.addr, cacheEnv+"="+guests.CacheDir(t), protocolEnv+"="+h.p.Name)
	h.cmd.Stderr = h.log
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, over := h.cmd, h.over
	go func() {
		_ = cmd.Wait()
		close(over)
	}()
	c := h.as(t, aliceToken)
	settled(t, "the host comes up", func() bool {
		select {
		case <-over:
			t.Fatal("the host has ended")
		default:
		}
		_, err := c.Root(t.Context())
		return err == nil
	})
}

// kill kills the host, if it runs, and waits for its end.
func (h *process) kill() {
	if h.cmd == nil {
		return
	}
	_ = h.cmd.Process.Kill()
	<-h.over
}

func (h *process) url() string {
	if h.p.Cert != "" {
		return "https://" + h.addr
	}
	return "http://" + h.addr
}

func (h *process) as(t *testing.T, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: h.url(), Token: token, Patience: patience, TLS: client.TLS{CA: h.p.Cert}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// load reads the file in a directory.
func load(p Protocol, dir string) func() (*config.Config, error) {
	return func() (*config.Config, error) {
		opt := config.Options{BundleDir: hosttest.Bundles()}
		if p.Gateway != nil {
			opt.Gateways = []string{p.Name}
		}
		return config.Load(filepath.Join(dir, "swarm.toml"), opt)
	}
}
