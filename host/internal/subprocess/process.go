package subprocess

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"skep/abi"
	"skep/abi/pluginpb"
	"skep/host/internal/sandbox"
)

// startPatience bounds a process's start.
const startPatience = 15 * time.Second

// stopPatience bounds how long a process takes to answer that it will end.
const stopPatience = 2 * time.Second

// watch says how a running process is looked after.
type watch struct {
	every, patience time.Duration // of its health
	idle            time.Duration // that it may have no turn; 0 is any
}

// process is one running program. It is safe for concurrent use.
type process struct {
	guard  *guarded
	client *goplugin.Client
	agent  pluginpb.AgentClient
	health grpc_health_v1.HealthClient
	desk   *desk
	broker uint32 // what it dials to reach the desk
	tls    *tls.Config
	said   *lines
	log    *slog.Logger

	mu    sync.Mutex
	turns int
	since time.Time // of when it has had no turn
	// retired says that it takes no more turns, and ends with its last one.
	retired bool
	ended   sync.Once
	ending  atomic.Bool // somebody ends it
}

// peer is the host's side of the plugin.
type peer struct {
	goplugin.NetRPCUnsupportedPlugin
}

// GRPCServer is the process's side, which is not here.
func (peer) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no agent")
}

// reached is what the host gets of a process.
type reached struct {
	broker *goplugin.GRPCBroker
	conn   *grpc.ClientConn
}

// GRPCClient implements goplugin.GRPCPlugin.
func (peer) GRPCClient(_ context.Context, b *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &reached{b, conn}, nil
}

// begin starts a process, up to the point where it answers.
func begin(ctx context.Context, command []string, i *image, s spec, log *slog.Logger) (_ *process, err error) {
	if s.Dir, err = os.MkdirTemp("", "skep-agent-"); err != nil {
		return nil, fmt.Errorf("make its directory: %w", err)
	}
	p := &process{desk: newDesk(), log: log, guard: newGuarded(command, s, i.file), said: &lines{log: log}, since: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.Dir))
		}
	}()
	var certificate string
	if p.tls, certificate, err = identity(); err != nil {
		return nil, err
	}
	p.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: pluginpb.ProtocolVersion, MagicCookieKey: pluginpb.CookieKey, MagicCookieValue: pluginpb.CookieValue,
		},
		Plugins:          goplugin.PluginSet{pluginpb.Name: &peer{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		TLSConfig:        p.tls, SkipHostEnv: true, StartTimeout: startPatience, Logger: hclog.NewNullLogger(),
		GRPCDialOptions:  dialing(),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: s.Dir},
		Stderr:           p.said, SyncStdout: p.said, SyncStderr: p.said,
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			return p.guard.within(append(cmd.Env, certEnv+"="+certificate)), nil
		},
	})
	if err := p.connect(ctx); err != nil {
		return nil, p.unserved(ctx, err)
	}
	return p, nil
}

// connect waits for the handshake.
func (p *process) connect(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- p.meet() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *process) meet() error {
	conn, err := p.client.Client()
	if err != nil {
		return errors.New(clip(err.Error(), maxLine)) // it may quote what the process says
	}
	raw, err := conn.Dispense(pluginpb.Name)
	if err != nil {
		return err
	}
	at := raw.(*reached) // peer makes no others
	p.agent, p.health = pluginpb.NewAgentClient(at.conn), grpc_health_v1.NewHealthClient(at.conn)
	p.broker = at.broker.NextId()
	go p.open(at.broker)
	return nil
}

// open serves the desk to the process, until it has ended.
func (p *process) open(b *goplugin.GRPCBroker) {
	listener, err := b.Accept(p.broker)
	if err != nil {
		return // the process has ended
	}
	server := p.desk.server(p.tls)
	go func() {
		<-p.guard.done
		server.Stop()
	}()
	if err := server.Serve(newFew(listener, maxConns)); err != nil && p.guard.ended() == "" {
		p.log.Warn("a subprocess cannot reach the host", "err", err)
	}
}

// start calls what comes before any turn.
func (p *process) start(ctx context.Context, call func(context.Context, *pluginpb.StartRequest, ...grpc.CallOption) (*pluginpb.Outcome, error)) (*pluginpb.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	s := newSession(ctx, sandbox.Turn{}, p.log)
	s.starting = true
	p.desk.enter(s)
	defer p.desk.leave(s)
	return call(ctx, &pluginpb.StartRequest{BrokerId: p.broker, Session: s.token}, grpc.MaxCallRecvMsgSize(abi.MaxDescriptor+maxMessage))
}

// take counts a turn in; ok is false when the process takes no more.
func (p *process) take() (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired || p.guard.ended() != "" {
		return false
	}
	p.turns++
	return true
}

// release counts a turn out. One that does not end takes the process with it, once
// nobody else's turn is in it.
func (p *process) release(stuck bool) {
	p.mu.Lock()
	p.turns--
	p.since = time.Now()
	p.retired = p.retired || stuck
	last := p.retired && p.turns == 0
	p.mu.Unlock()
	if last {
		p.kill("it did not end a turn that was over")
	}
}

// rested reports whether there was no turn for so long, and takes none any more
// then.
func (p *process) rested(idle time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns > 0 || p.retired || time.Since(p.since) < idle {
		return false
	}
	p.retired = true
	return true
}

// kill ends the process and everything it has started, at once. The reason is for
// whoever has a turn in it.
func (p *process) kill(why string) {
	p.ended.Do(func() {
		p.ending.Store(true)
		p.guard.blame(why)
		if err := p.guard.Kill(context.Background()); err != nil {
			p.log.Warn("a subprocess may have left something behind", "err", err)
		}
		p.client.Kill()
	})
}

// stop asks the process to end, and ends it soon.
func (p *process) stop() {
	p.ended.Do(func() {
		p.ending.Store(true)
		// It might never answer, and the answer is waited for without end.
		late := time.AfterFunc(stopPatience, func() { _ = p.guard.Kill(context.Background()) })
		defer late.Stop()
		p.client.Kill()
	})
}

// watch ends a process that does not answer any more, or has nothing to do, until it
// has ended.
func (p *process) watch(w watch) {
	health := time.NewTicker(w.every)
	defer health.Stop()
	var idle <-chan time.Time
	if w.idle > 0 {
		tick := time.NewTicker(min(w.idle, w.every))
		defer tick.Stop()
		idle = tick.C
	}
	for {
		select {
		case <-p.guard.done:
			p.stop() // nobody else might; its connection is still here
			return
		case <-idle:
			if p.rested(w.idle) {
				p.log.Info("a subprocess had no turn for a while, and is ended", "idle", w.idle)
				p.stop()
				return
			}
		case <-health.C:
			if err := p.check(w.patience); err != nil && !p.ending.Load() {
				p.log.Warn("a subprocess does not answer, and is killed", "err", err)
				p.kill("it did not answer the health check")
				return
			}
		}
	}
}

// check asks a process whether it is well.
func (p *process) check(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := p.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	return err
}

// lines puts what a process writes for people into the log, and keeps the last.
type lines struct {
	log *slog.Logger

	mu      sync.Mutex
	written int
	part    []byte
	last    string
}

var _ io.Writer = (*lines)(nil)

// maxLines is what a process may write to the log.
const maxLines = 1000

// Write takes what comes, in pieces of any size.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range b {
		if c != '\n' && len(l.part) < maxLine {
			l.part = append(l.part, c)
		}
		if c == '\n' {
			l.line()
		}
	}
	return len(b), nil
}

func (l *lines) line() {
	text := clip(string(l.part), maxLine)
	l.part = l.part[:0]
	if text == "" {
		return
	}
	l.last = text
	if l.written++; l.written <= maxLines {
		l.log.Info("subprocess", "line", text)
	}
	if l.written == maxLines {
		l.log.Warn("a subprocess has written its most lines; the others are lost", "lines", maxLines)
	}
}

// lastWords are the last line, for an error.
func (l *lines) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := cmp.Or(l.last, string(l.part)); last != "" {
		return "; its last words: " + clip(last, maxLine)
	}
	return ""
}
