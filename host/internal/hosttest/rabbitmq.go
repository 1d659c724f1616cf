package hosttest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// RabbitMQ is a real broker of AMQP 0-9-1, that is killed and started again on its files. It
// lets in the user guest with the password guest.
type RabbitMQ struct {
	// Addr is where it listens.
	Addr string

	dir, names string
	kill       func()
}

// rabbitScripts is where the distribution has the broker's own scripts: what it has in PATH
// changes to a user of the system.
const rabbitScripts = "/usr/lib/rabbitmq/bin"

// StartRabbitMQ starts a broker that ends with the test. Its files and the ports of its names
// are its own: a broker of the system is not touched.
func StartRabbitMQ(t *testing.T) *RabbitMQ {
	t.Helper()
	SystemProgram(t, "rabbitmq-server")
	b, err := OpenRabbitMQ(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	return b
}

// OpenRabbitMQ starts a broker with its files in a directory, until Kill is called.
func OpenRabbitMQ(dir string) (b *RabbitMQ, err error) {
	b = &RabbitMQ{dir: dir, kill: func() {}}
	for _, address := range []*string{&b.Addr, &b.names} {
		if *address, err = ports.free("127.0.0.1"); err != nil {
			return nil, err
		}
	}
	conf := "listeners.tcp.1 = " + b.Addr + "\ndisk_free_limit.absolute = 1MB\nvm_memory_high_watermark.absolute = 512MB\n"
	for name, text := range map[string]string{"rabbitmq.conf": conf, "plugins": "[].\n", "env.conf": ""} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return b, b.start()
}

// rabbitScript runs the broker $0 and what it registers its name at, until standard input
// ends, at the latest with the test's process: a panic runs no Cleanup. Both are sessions of
// their own, since the broker starts further processes.
const rabbitScript = `setsid epmd -address 127.0.0.1 -port "$ERL_EPMD_PORT" & names=$!
setsid "$0" >out 2>&1 & broker=$!
read -r _
kill -9 "-$broker" "-$names"
wait`

// Start starts the broker again, on its files.
func (b *RabbitMQ) Start(t *testing.T) {
	t.Helper()
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
}

// start returns when the broker serves.
func (b *RabbitMQ) start() error {
	cmd, err := b.command()
	if err != nil {
		return err
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.kill = sync.OnceFunc(func() {
		_ = input.Close()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) { // it takes 10 s on a quiet machine
		if err = b.greet(); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			b.kill()
			out, _ := os.ReadFile(filepath.Join(b.dir, "out"))
			return fmt.Errorf("the broker does not serve: %w: %s", err, out)
		}
	}
}

// command runs the broker on its files.
func (b *RabbitMQ) command() (*exec.Cmd, error) {
	_, names, err := net.SplitHostPort(b.names)
	if err != nil {
		return nil, err
	}
	between, err := ports.free("127.0.0.1")
	if err != nil {
		return nil, err
	}
	_, distribution, err := net.SplitHostPort(between)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", rabbitScript, filepath.Join(rabbitScripts, "rabbitmq-server"))
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(),
		"HOME="+b.dir, "ERL_EPMD_PORT="+names, "ERL_EPMD_ADDRESS=127.0.0.1", "RABBITMQ_DIST_PORT="+distribution, "RABBITMQ_NODENAME=test@localhost",
		"RABBITMQ_CONF_ENV_FILE="+b.dir+"/env.conf", "RABBITMQ_CONFIG_FILE="+b.dir+"/rabbitmq", "RABBITMQ_ENABLED_PLUGINS_FILE="+b.dir+"/plugins",
		"RABBITMQ_MNESIA_BASE="+b.dir+"/data", "RABBITMQ_LOG_BASE="+b.dir+"/log", "RABBITMQ_FEATURE_FLAGS_FILE="+b.dir+"/flags",
		"RABBITMQ_ALLOW_INPUT=1", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput +S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
	)
	return cmd, nil
}

// greet looks whether the broker answers the protocol's header with its first method
// (https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf, section 2.2.4).
func (b *RabbitMQ) greet() error {
	conn, err := net.DialTimeout("tcp", b.Addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil {
		return err
	}
	if first[0] != 1 {
		return fmt.Errorf("it answers with %d", first[0])
	}
	return nil
}

// Waiting is the number of messages that wait in a queue.
func (b *RabbitMQ) Waiting(t *testing.T, queue string) int {
	t.Helper()
	found, err := b.look(t, queue)
	if err != nil {
		t.Fatal(err)
	}
	return found.Messages
}

// Readers is the number of programs that read a queue, 0 for one that does not exist.
func (b *RabbitMQ) Readers(t *testing.T, queue string) int {
	t.Helper()
	found, _ := b.look(t, queue)
	return found.Consumers
}

func (b *RabbitMQ) look(t *testing.T, queue string) (found amqp.Queue, err error) {
	t.Helper()
	b.manage(t, func(ch *amqp.Channel) { found, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil) })
	return found, err
}

// Declare makes a durable queue without arguments, as another program may.
func (b *RabbitMQ) Declare(t *testing.T, queue string) {
	t.Helper()
	b.manage(t, func(ch *amqp.Channel) {
		if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Delete deletes a queue with its messages.
func (b *RabbitMQ) Delete(t *testing.T, queue string) {
	t.Helper()
	b.manage(t, func(ch *amqp.Channel) {
		if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
			t.Fatal(err)
		}
	})
}

// manage does something at the broker on a connection of its own.
func (b *RabbitMQ) manage(t *testing.T, do func(*amqp.Channel)) {
	t.Helper()
	conn, err := amqp.Dial("amqp://" + b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	do(channel)
}

// Kill kills the broker, if it runs.
func (b *RabbitMQ) Kill() { b.kill() }
