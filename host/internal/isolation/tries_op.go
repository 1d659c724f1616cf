package isolation

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"

	"skep/host/client"
)

// opTries are what a hostile module asks the host for. Its task has the id of
// one of the victim's, and its principal the same id.
func opTries() []try {
	return []try{
		{"kv-read", "values of another tenant, in every scope", tryKVRead},
		{"kv-write", "writing over values of another tenant, in every scope", tryKVWrite},
		{"blob", "a blob of another tenant, by its right address", tryBlob},
		{"history", "the history of another tenant's agent", tryHistory},
		{"mail", "mail to another tenant's agents", tryMail},
		{"timer", "cancelling another tenant's timer", tryTimer},
		{"secret", "secrets that nobody has granted", trySecret},
		{"http", "reaching the host's own listener from a module", tryHTTP},
		{"random", "the random numbers of another tenant's turn", tryRandom},
		{"emit", "words in another tenant's stream", tryEmit},
		{"log", "a line in another tenant's log", tryLog},
	}
}

var scopes = []string{"task", "agent", "instance"}

func tryKVRead(ctx context.Context, x *trial) error {
	for _, scope := range scopes {
		texts, err := play(ctx, x.hostile, client.Post{Task: endedTask},
			call{"kv.get", obj{"key": kvName, "scope": scope}}, call{"kv.list", obj{"scope": scope}},
			call{"kv.get", obj{"key": "victim/" + kvName, "scope": scope}}, call{"kv.get", obj{"key": kvName, "scope": "tenant"}})
		if err != nil {
			return err
		}
		for _, i := range []int{0, 2, 3} {
			if !failed(texts[i]) {
				return fmt.Errorf("scope %s has %q", scope, texts[i])
			}
		}
		if strings.Contains(texts[1], kvName) {
			return fmt.Errorf("scope %s lists %s", scope, texts[1])
		}
	}
	return nil
}

func tryKVWrite(ctx context.Context, x *trial) error {
	var calls []call
	for _, scope := range scopes {
		calls = append(calls, call{"kv.put", obj{"key": kvName, "value": "hostile", "scope": scope}},
			call{"kv.cas", obj{"key": kvName, "expect": "hostile", "value": "hostile", "scope": scope}},
			call{"kv.delete", obj{"key": kvName, "scope": scope}})
	}
	if _, err := play(ctx, x.hostile, client.Post{Task: endedTask}, calls...); err != nil {
		return err
	}
	for _, scope := range scopes {
		texts, err := play(ctx, x.victim, client.Post{Task: endedTask}, call{"kv.get", obj{"key": kvName, "scope": scope}})
		if err != nil {
			return err
		}
		if texts[0] != x.marker {
			return fmt.Errorf("scope %s of another tenant now has %q", scope, texts[0])
		}
	}
	return nil
}

func tryHistory(ctx context.Context, x *trial) error {
	texts, err := play(ctx, x.hostile, client.Post{Task: endedTask}, call{"history", obj{"limit": 1000}})
	if err != nil {
		return err
	}
	if failed(texts[0]) || strings.Contains(texts[0], x.marker) || strings.Contains(texts[0], "victim/alice") {
		return fmt.Errorf("the history is %.200s", texts[0])
	}
	return nil
}

func tryBlob(ctx context.Context, x *trial) error {
	texts, err := play(ctx, x.hostile, client.Post{Task: endedTask}, call{"blob.get", obj{"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(x.marker)))}})
	if err != nil {
		return err
	}
	if !strings.Contains(texts[0], "NOT_FOUND") {
		return fmt.Errorf("the host told %q", texts)
	}
	return nil
}

func tryMail(ctx context.Context, x *trial) error {
	for _, target := range []string{"agent@victim", "victim/agent", "agent@victim/isolation", "user:victim/alice@isolation", "victim/alice"} {
		texts, err := play(ctx, x.hostile, client.Post{},
			call{"send_request", obj{"target": target, "subject": "hostile", "body": "hostile"}},
			call{"send_broadcast", obj{"targets": []string{target}, "subject": "hostile", "body": "hostile"}})
		if err != nil {
			return err
		}
		if !failed(texts[0]) || !failed(texts[1]) {
			return fmt.Errorf("mail to %s: %q", target, texts)
		}
	}
	return x.untouched(ctx)
}

func tryTimer(ctx context.Context, x *trial) error {
	texts, err := play(ctx, x.hostile, client.Post{Task: waitingTask}, call{"timer.cancel", obj{"id": x.timer}})
	if err != nil {
		return err
	}
	if !failed(texts[0]) {
		return errors.New("the timer was cancelled")
	}
	return x.untouched(ctx)
}

func trySecret(ctx context.Context, x *trial) error {
	texts, err := play(ctx, x.hostile, client.Post{}, call{"secret.exists", obj{"name": kvName}}, call{"blob.get", obj{"sha256": strings.Repeat("0", 64)}})
	if err != nil {
		return err
	}
	if !failed(texts[0]) && !strings.Contains(texts[0], "false") || !failed(texts[1]) {
		return fmt.Errorf("the host told %q", texts)
	}
	return nil
}

func tryHTTP(ctx context.Context, x *trial) error {
	texts, err := play(ctx, x.hostile, client.Post{}, call{"http.fetch", obj{"method": "GET", "url": x.url + "/skep/v1/tasks"}})
	if err != nil {
		return err
	}
	if !failed(texts[0]) {
		return fmt.Errorf("the host answered its own agent: %s", texts[0])
	}
	return nil
}

func tryRandom(ctx context.Context, x *trial) error {
	seen := map[string]bool{}
	for _, c := range []*client.Client{x.victim, x.hostile} {
		texts, err := play(ctx, c, client.Post{Task: "random-task"}, call{"random", obj{}})
		if err != nil {
			return err
		}
		if seen[texts[0]] || failed(texts[0]) {
			return fmt.Errorf("both tenants got %s", texts[0])
		}
		seen[texts[0]] = true
	}
	return nil
}

func tryEmit(ctx context.Context, x *trial) error {
	const task = "stream-task"
	if err := wait(ctx, x.victim, task, "x"); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- listen(reading, x.victim, task, sync.OnceFunc(func() { close(begun) })) }()
	select {
	case <-begun:
	case err := <-ended:
		return err
	}
	_, err := play(ctx, x.hostile, client.Post{Task: task},
		call{"emit", obj{"note": "hostile"}}, call{"emit", obj{"chunk": "hostile"}}, call{"emit", obj{"progress": obj{"text": "hostile"}}})
	if err == nil {
		// What the victim's own agent does comes after whatever was slipped in.
		err = x.victim.Cancel(ctx, task)
	}
	if err != nil {
		stop()
	}
	return errors.Join(err, <-ended)
}

// listen reads a stream to its end, and complains of what the hostile tenant has
// said.
func listen(ctx context.Context, c *client.Client, task string, begun func()) error {
	for e, err := range c.Stream(ctx, task, 0) {
		if err != nil {
			return err
		}
		if strings.Contains(string(e.Extra)+e.Description+e.Response, "hostile") {
			return fmt.Errorf("the stream of another tenant has %s: %s", e.Name, e.Extra)
		}
		begun()
	}
	return nil
}

func tryLog(ctx context.Context, x *trial) error {
	const said = "hostile line, tenant=victim"
	if _, err := play(ctx, x.hostile, client.Post{Task: endedTask}, call{"log", obj{"message": said}}); err != nil {
		return err
	}
	var lines []line
	err := until(ctx, func() (found bool, err error) {
		lines, err = x.log.agents()
		for _, l := range lines {
			found = found || l.Message == said
		}
		return found, err
	})
	for _, l := range lines {
		want := "victim"
		if l.Message == said {
			want = "hostile"
		}
		if l.Tenant != want && l.Message != "loaded" {
			err = errors.Join(err, fmt.Errorf("the line %q is logged for tenant %q", l.Message, l.Tenant))
		}
	}
	return err
}
