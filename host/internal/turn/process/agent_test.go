package process_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"skep/abi"
	"skep/abi/pluginpb"
	"skep/host/internal/turn/process"
)

// TestMain makes the test binary everything that runs here: the tests, the guard,
// and the agent's program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.Command {
		os.Exit(process.Exec(os.Args[2:], os.Stderr))
	}
	if os.Getenv(pluginpb.CookieKey) == pluginpb.CookieValue {
		play(os.Args[0])
		return
	}
	os.Exit(m.Run())
}

// play is the agent's program, which begins as its name says.
func play(name string) {
	switch name {
	case "garbage":
		fmt.Println(strings.Repeat("no handshake ", 1000))
		time.Sleep(time.Hour)
	case "silent":
		time.Sleep(time.Hour)
	case "endless":
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	case "elsewhere":
		fmt.Printf("1|%d|tcp|127.0.0.1:1|grpc|%s\n", pluginpb.ProtocolVersion, strings.Repeat("A", 100))
		time.Sleep(time.Hour)
	case "barefaced":
		_ = os.Unsetenv("PLUGIN_CLIENT_CERT") // it serves without a certificate
	case "stall":
		if err := stall(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "imposter":
		if err := impersonate(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "stillborn":
		fmt.Fprintln(os.Stderr, "nothing works here")
		os.Exit(3)
	}
	streams := &streams{open: map[string]grpc.ServerStream{}}
	version := uint(pluginpb.ProtocolVersion)
	if name == "stranger" {
		version = 99
	}
	config := &goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: version, MagicCookieKey: pluginpb.CookieKey, MagicCookieValue: pluginpb.CookieValue,
		},
		Plugins: goplugin.PluginSet{pluginpb.Name: &served{streams: streams, late: name == "late"}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.StreamInterceptor(streams.see), grpc.UnaryInterceptor(mute(name)))...)
		},
	}
	if name == headless {
		go goplugin.Serve(config)
		endMainThread()
	}
	goplugin.Serve(config)
}

// impersonate makes the handshake name another certificate than the one that is
// served with.
func impersonate() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	other, err := certificate()
	if err != nil {
		return err
	}
	out := os.Stdout
	os.Stdout = w
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n')
		parts := strings.Split(strings.TrimSpace(line), "|")
		parts[5] = base64.RawStdEncoding.EncodeToString(other.Certificate[0])
		fmt.Fprintln(out, strings.Join(parts, "|"))
	}()
	return nil
}

// served is the process's side of the plugin.
type served struct {
	streams *streams
	late    bool
	goplugin.NetRPCUnsupportedPlugin
}

func (p served) GRPCServer(b *goplugin.GRPCBroker, s *grpc.Server) error {
	pluginpb.RegisterAgentServer(s, &actor{broker: b, held: make(chan string, 1), streams: p.streams, isLate: p.late})
	return nil
}

func (p served) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not the host")
}

// actor does what the turn's input says.
type actor struct {
	pluginpb.UnimplementedAgentServer
	broker *goplugin.GRPCBroker
	held   chan string // the session of a turn that is over
	hostID uint32
	isLate bool // it connects to the host with its first turn
	*streams

	mu   sync.Mutex
	host pluginpb.HostClient
}

const descriptor = `{"abi":1,"name":"actor","version":"1.0.0"}`

func (a *actor) dial(id uint32) (pluginpb.HostClient, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.host == nil {
		conn, err := a.broker.Dial(id)
		if err != nil {
			return nil, err
		}
		a.host = pluginpb.NewHostClient(conn)
	}
	return a.host, nil
}

func (a *actor) Describe(ctx context.Context, req *pluginpb.StartRequest) (*pluginpb.Outcome, error) {
	if a.isLate {
		a.hostID = req.BrokerId
		return &pluginpb.Outcome{Output: []byte(descriptor)}, nil
	}
	host, err := a.dial(req.BrokerId)
	if err != nil {
		return nil, err
	}
	rsp, err := host.Call(ctx, &pluginpb.OpRequest{Session: req.Session, Op: int32(abi.OpRandom)})
	if err != nil || abi.Code(rsp.Code) != abi.CodeDenied {
		return nil, fmt.Errorf("an op before any turn: %v %v", rsp, err)
	}
	return &pluginpb.Outcome{Output: []byte(descriptor)}, nil
}

func (a *actor) Warm(context.Context, *pluginpb.StartRequest) (*pluginpb.Outcome, error) {
	return &pluginpb.Outcome{Status: int32(abi.StatusNotImplemented)}, nil
}

// Turn takes a word and its argument.
func (a *actor) Turn(ctx context.Context, req *pluginpb.CallRequest) (*pluginpb.Outcome, error) {
	var ask struct{ Do, With string }
	if err := json.Unmarshal(req.Input, &ask); err != nil {
		return nil, err
	}
	note, err := a.do(ctx, req.Session, ask.Do, ask.With)
	if err != nil {
		note = "error: " + err.Error()
	}
	out, _ := json.Marshal(abi.TurnResult{Notes: []string{note}})
	return &pluginpb.Outcome{Output: out}, nil
}

func (a *actor) do(ctx context.Context, session, do, with string) (string, error) {
	switch do {
	case "echo":
		return with, nil
	case "op":
		rsp, err := a.host.Call(ctx, &pluginpb.OpRequest{Session: session, Op: int32(abi.OpKVGet), Request: []byte(with)})
		return fmt.Sprint(rsp.GetCode(), " ", string(rsp.GetBody())), err
	case "hang":
		time.Sleep(time.Hour)
	case "die":
		os.Exit(7)
	case "fork":
		return detach()
	case "pid":
		return fmt.Sprint(os.Getpid()), nil
	case "flood":
		return flood(), nil
	case "bomb":
		return bomb()
	case "runaway":
		cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"runaway", "-c", "f() { f & }; f"}}
		return "ran", cmd.Run()
	case "large":
		rsp, err := a.host.Call(ctx, &pluginpb.OpRequest{Session: session, Op: int32(abi.OpKVGet), Request: make([]byte, len(with)<<20)})
		return fmt.Sprint(rsp.GetCode(), " ", len(rsp.GetBody())), err
	case "huge":
		return strings.Repeat("x", 8<<20), nil
	case "env":
		return strings.Join(os.Environ(), "\n"), nil
	case "read":
		b, err := os.ReadFile(with)
		return string(b), err
	case "write":
		return "written", os.WriteFile(with, []byte("x"), 0o600)
	case "dial":
		_, err := net.DialTimeout("tcp", with, time.Second)
		return "reached", err
	case "alloc":
		return alloc(), nil
	case "ptrace":
		return "traced", syscall.PtraceAttach(os.Getppid())
	case "namespace":
		return "made", exec.Command("/usr/bin/unshare", "-r", "/bin/true").Run()
	case "keep":
		a.held <- session
		return "kept", nil
	case "reuse":
		_, err := a.host.Call(ctx, &pluginpb.OpRequest{Session: <-a.held, Op: int32(abi.OpKVGet)})
		return "used", err
	case "reach":
		way, with, _ := strings.Cut(with, ":")
		return "done", reach(way, with)
	case "hoard":
		return "hoarded", hoard(with)
	case "late":
		return a.late(ctx, session)
	case "occupy":
		return occupy(with)
	case "observe":
		how, path, _ := strings.Cut(with, ":")
		return "done", observe(how, path)
	case "getenv":
		return os.Getenv(with), nil
	case "unasked":
		return "sent", a.unasked(with)
	case "fill":
		return "filled", fill(with)
	case "waits":
		return a.waits(ctx, session)
	case "handles":
		return a.handles(ctx, session)
	case "forge":
		_, err := a.host.Call(ctx, &pluginpb.OpRequest{Session: with, Op: int32(abi.OpKVGet)})
		return "used", err
	}
	return "", fmt.Errorf("no command %q", do)
}

// detach starts a process without a parent, and returns its process id.
func detach() (string, error) {
	out, err := exec.Command("/bin/sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!").Output()
	return strings.TrimSpace(string(out)), err
}

// flood writes far more than anybody reads, in short lines and in one long one.
func flood() string {
	for range 20_000 {
		fmt.Fprintln(os.Stderr, "a line\x1b[2J")
		fmt.Println("another")
	}
	fmt.Fprint(os.Stderr, strings.Repeat("x", 8<<20))
	return "written"
}

// bomb starts processes until there may be no more.
func bomb() (string, error) {
	cmd := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 2000 ]; do sleep 1000 & i=$((i+1)); done; wait")
	cmd.WaitDelay = time.Second // those that were started have its output when it may start no more
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func alloc() string {
	var all [][]byte
	for range 64 {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Sprint(len(all))
}
