package hosttest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Kafka is a cluster of one broker in a process of its own, that is killed and started again on its
// files. It is no real Kafka, which the distribution does not have, but the fake of franz-go: a real
// socket, and files that are synced. What tests send and read goes through kcat.
type Kafka struct {
	// Addr is where it listens.
	Addr string

	kcat, dir string
	kill      func()
}

// kafkaVariable has the port and the directory of a broker for [ServeKafka].
const kafkaVariable = "SKEP_TEST_KAFKA"

// ServeKafka serves a broker until standard input ends, if the environment asks for it, and exits.
func ServeKafka() {
	at, asked := os.LookupEnv(kafkaVariable)
	if !asked {
		return
	}
	port, dir, _ := strings.Cut(at, " ")
	n, _ := strconv.Atoi(port)
	_, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(n), kfake.SeedTopics(3, "amp.request", "amp.response", "amp.event", "amp.error", "amp.dlq"), kfake.DataDir(dir), kfake.SyncWrites())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// StartKafka starts a broker that ends with the test. [ServeKafka] is one of the functions of [Main].
func StartKafka(t *testing.T) *Kafka {
	t.Helper()
	b := &Kafka{kcat: SystemProgram(t, "kcat"), dir: t.TempDir(), Addr: FreeAddress(t, "127.0.0.1"), kill: func() {}}
	t.Cleanup(b.Kill)
	b.Start(t)
	return b
}

// Start starts the broker again, on its files.
func (b *Kafka) Start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), kafkaVariable+"="+port+" "+b.dir)
	cmd.Stderr = t.Output()
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	b.kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = input.Close()
	})
	Eventually(t, "the broker serves", func() bool {
		conn, err := net.Dial("tcp", b.Addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Kill kills the broker, if it runs.
func (b *Kafka) Kill() { b.kill() }

// kcatTime bounds one run of kcat.
const kcatTime = 20 * time.Second

// Publish sends a message with a key to a topic by kcat, and returns when the broker has stored it.
func (b *Kafka) Publish(ctx context.Context, topic, key string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, kcatTime)
	defer cancel()
	// The text is one message as it is, since it has no line ends.
	cmd := exec.CommandContext(ctx, b.kcat, "-P", "-b", b.Addr, "-t", topic, "-k", key, "-q", "-X", "message.timeout.ms=5000", "-X", "message.max.bytes=10000000")
	cmd.Stdin = strings.NewReader(string(text))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kcat: %w: %s", err, out)
	}
	return nil
}

// Records are the lines "KEY VALUE" of all records of a topic, by kcat.
func (b *Kafka) Records(ctx context.Context, topic string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, kcatTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, b.kcat, "-C", "-b", b.Addr, "-t", topic, "-o", "beginning", "-e", "-q", "-f", `%k %s\n`).Output()
	if err != nil {
		return nil, fmt.Errorf("kcat: %w", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}
