package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
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
	"skep/host/internal/turn"
)

// startTimeout bounds the start of a process.
const startTimeout = 15 * time.Second

// stopTimeout bounds the wait for a process that was asked to end.
const stopTimeout = 2 * time.Second

// monitorConfig are the settings of a process's monitor.
type monitorConfig struct {
	interval, timeout time.Duration // of the health check
	idle              time.Duration // longest time without a turn; 0 is unlimited
}

// process is one running program. It is safe for concurrent use.
type process struct {
	guard   *guardedProcess
	client  *goplugin.Client
	agent   pluginpb.AgentClient
	health  grpc_health_v1.HealthClient
	service *hostService
	broker  uint32 // id of the host service
	tls     *tls.Config
	output  *outputLog
	log     *slog.Logger

	mu        sync.Mutex
	turns     int
	idleSince time.Time // end of the last turn
	// retired is set if the process takes no more turns, and ends with its last one.
	retired bool
	endOnce sync.Once
	ending  atomic.Bool // kill or stop was called
}

// hostPlugin is the host's side of the plugin.
type hostPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

// GRPCServer is not used: the process is the server.
func (hostPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no agent")
}

// pluginConn is the host's connection to a process.
type pluginConn struct {
	broker *goplugin.GRPCBroker
	conn   *grpc.ClientConn
}

// GRPCClient implements goplugin.GRPCPlugin.
func (hostPlugin) GRPCClient(_ context.Context, b *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &pluginConn{b, conn}, nil
}

// longestSocket is the longest path of a socket that go-plugin makes in a directory.
const longestSocket = "/plugin-dir4294967295/plugin4294967295"

// maxSocketPath is the most bytes of a socket's path. See unix(7).
const maxSocketPath = 107

// startProcess starts a process and waits until it answers.
func startProcess(ctx context.Context, command []string, i *sealedProgram, s spec, log *slog.Logger) (_ *process, err error) {
	// The name cannot be guessed: a socket in it is open to every process of this user.
	s.Dir = filepath.Join(os.TempDir(), "skep-agent-"+rand.Text()[:16])
	if most := maxSocketPath - len(longestSocket) - (len(s.Dir) - len(os.TempDir())); len(os.TempDir()) > most {
		return nil, fmt.Errorf("the path of the temporary directory %s has %d bytes, at most %d fit before the sockets of a process: set TMPDIR to a shorter one",
			os.TempDir(), len(os.TempDir()), most)
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make its directory: %w", err)
	}
	if s.Cgroup != "" {
		s.Cgroup = filepath.Join(s.Cgroup, filepath.Base(s.Dir))
		if err := newCgroup(s.Cgroup, s.Memory); err != nil {
			return nil, errors.Join(fmt.Errorf("make its control group: %w", err), os.RemoveAll(s.Dir))
		}
	}
	p := &process{service: newHostService(), log: log, guard: newGuardedProcess(command, s, i.file), output: &outputLog{log: log}, idleSince: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.Dir), removeCgroup(s.Cgroup))
		}
	}()
	var certificate string
	if p.tls, certificate, err = newIdentity(); err != nil {
		return nil, err
	}
	p.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: pluginpb.ProtocolVersion, MagicCookieKey: pluginpb.CookieKey, MagicCookieValue: pluginpb.CookieValue,
		},
		Plugins:          goplugin.PluginSet{pluginpb.Name: &hostPlugin{}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		TLSConfig:        p.tls, SkipHostEnv: true, StartTimeout: startTimeout, Logger: hclog.NewNullLogger(),
		GRPCDialOptions:  dialOptions(),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: s.Dir},
		Stderr:           p.output, SyncStdout: p.output, SyncStderr: p.output,
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			return p.guard.withEnv(append(cmd.Env, certEnv+"="+certificate)), nil
		},
	})
	if err := p.connect(ctx); err != nil {
		return nil, p.startFailure(ctx, err)
	}
	return p, nil
}

// connect waits for the handshake.
func (p *process) connect(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- p.handshake() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *process) handshake() error {
	conn, err := p.client.Client()
	if err != nil {
		return errors.New(printable(err.Error(), maxLine)) // it may quote output of the process
	}
	raw, err := conn.Dispense(pluginpb.Name)
	if err != nil {
		return err
	}
	at := raw.(*pluginConn) // hostPlugin returns no other type
	p.agent, p.health = pluginpb.NewAgentClient(at.conn), grpc_health_v1.NewHealthClient(at.conn)
	p.broker = at.broker.NextId()
	go p.serveHost(at.broker)
	return nil
}

// serveHost serves the host service until the process has ended.
func (p *process) serveHost(b *goplugin.GRPCBroker) {
	listener, err := b.Accept(p.broker)
	if err != nil {
		return // the process has ended
	}
	server := p.service.server(p.tls)
	go func() {
		<-p.guard.done
		server.Stop()
	}()
	if err := server.Serve(newLimitedListener(listener, maxConns, p.guard.admits)); err != nil && p.guard.exitReason() == "" {
		p.log.Warn("a subprocess cannot reach the host", "err", err)
	}
}

// callBeforeTurn calls Describe or Warm, which run before any turn.
func (p *process) callBeforeTurn(ctx context.Context, call func(context.Context, *pluginpb.StartRequest, ...grpc.CallOption) (*pluginpb.Outcome, error)) (*pluginpb.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := newSession(ctx, turn.Turn{}, p.log)
	s.starting = true
	p.service.addSession(s)
	defer p.service.removeSession(s)
	return call(ctx, &pluginpb.StartRequest{BrokerId: p.broker, Session: s.token}, grpc.MaxCallRecvMsgSize(abi.MaxDescriptor+maxMessage))
}

// beginTurn counts a turn; ok is false if the process takes no more.
func (p *process) beginTurn() (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired || p.guard.exitReason() != "" {
		return false
	}
	p.turns++
	return true
}

// endTurn counts a turn as ended. A stuck turn ends the process once no other turn runs in
// it.
func (p *process) endTurn(stuck bool) {
	p.mu.Lock()
	p.turns--
	p.idleSince = time.Now()
	p.retired = p.retired || stuck
	last := p.retired && p.turns == 0
	p.mu.Unlock()
	if last {
		p.kill("it did not end a turn that was over")
	}
}

// retireIfIdle retires a process without a turn for the given time, and reports whether it
// did.
func (p *process) retireIfIdle(idle time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns > 0 || p.retired || time.Since(p.idleSince) < idle {
		return false
	}
	p.retired = true
	return true
}

// kill ends the process and its descendants at once. Turns in it fail with the reason.
func (p *process) kill(why string) {
	p.endOnce.Do(func() {
		p.ending.Store(true)
		p.guard.setReason(why)
		if err := p.guard.Kill(context.Background()); err != nil {
			p.log.Warn("a subprocess may have left something behind", "err", err)
		}
		p.client.Kill()
	})
}

// stop asks the process to end, and kills it after stopTimeout.
func (p *process) stop() {
	p.endOnce.Do(func() {
		p.ending.Store(true)
		// client.Kill waits without limit for an answer.
		late := time.AfterFunc(stopTimeout, func() { _ = p.guard.Kill(context.Background()) })
		defer late.Stop()
		p.client.Kill()
	})
}

// monitor ends a process that does not answer or is idle. It returns when the process has
// ended.
func (p *process) monitor(w monitorConfig) {
	health := time.NewTicker(w.interval)
	defer health.Stop()
	var idle <-chan time.Time
	if w.idle > 0 {
		tick := time.NewTicker(min(w.idle, w.interval))
		defer tick.Stop()
		idle = tick.C
	}
	for {
		select {
		case <-p.guard.done:
			p.stop() // closes the connection
			return
		case <-idle:
			if p.retireIfIdle(w.idle) {
				p.log.Info("a subprocess had no turn for a while, and is ended", "idle", w.idle)
				p.stop()
				return
			}
		case <-health.C:
			if err := p.checkHealth(w.timeout); err != nil && !p.ending.Load() {
				p.log.Warn("a subprocess does not answer, and is killed", "err", err)
				p.kill("it did not answer the health check")
				return
			}
		}
	}
}

// checkHealth runs the gRPC health check.
func (p *process) checkHealth(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := p.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	return err
}

// outputLog logs what a process writes, and keeps the last line.
type outputLog struct {
	log *slog.Logger

	mu      sync.Mutex
	written int
	part    []byte
	last    string
}

var _ io.Writer = (*outputLog)(nil)

// maxLines bounds the logged lines of a process.
const maxLines = 1000

// Write accepts pieces of any size.
func (l *outputLog) Write(b []byte) (int, error) {
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

func (l *outputLog) line() {
	text := printable(string(l.part), maxLine)
	l.part = l.part[:0]
	if text == "" {
		return
	}
	l.last = text
	if l.written++; l.written <= maxLines {
		l.log.Info("subprocess", "line", turn.Output(text))
	}
	if l.written == maxLines {
		l.log.Warn("a subprocess has written its most lines; the others are lost", "lines", maxLines)
	}
}

// lastWords quotes the last line, as the end of an error.
func (l *outputLog) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := cmp.Or(l.last, string(l.part)); last != "" {
		return "; its last words: " + printable(last, maxLine)
	}
	return ""
}
