package rest_test

import (
	"context"
	"strings"
	"testing"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// remoteTaskRuntime is a runtime with one task, which waits for calls.
type remoteTaskRuntime struct{ definitionRuntime }

func (remoteTaskRuntime) Task(_ context.Context, key swarm.TaskKey) (swarm.Snapshot, error) {
	return swarm.Snapshot{Task: swarm.Task{
		Key: key, Owner: "user:alice@hive", Contributors: []string{"user:alice@hive"}, State: swarm.StatePaused,
		Peers:     []swarm.TaskPeer{{Swarm: "depot", Agent: "stock"}, {Swarm: "yard", Agent: "boss"}},
		PeerCalls: []swarm.PeerCall{{Swarm: "depot", Agent: "stock@depot", Call: "c1", ID: "c1@depot", Name: "confirm", Args: "{}"}},
		Finish:    swarm.Finish{Cursor: 1, Subject: mail.SubjectBreakpointToolCall},
	}}, nil
}

func (remoteTaskRuntime) Events(context.Context, swarm.TaskKey, int64, int) ([]swarm.Event, error) {
	return nil, nil
}

// A task lists the other swarms that work on it, and all waiting calls.
func TestRemoteTask(t *testing.T) {
	t.Parallel()
	h := newHandler(t, remoteTaskRuntime{definitionRuntime{def: &swarm.Definition{Name: "hive"}}})
	for path, want := range map[string]string{
		"/task?task_id=t":  `"remote_swarms":["depot","yard"]`,
		"/skep/v1/tasks/t": `\"call_id\":\"c1@depot\"`,
	} {
		q := request{path: path}
		a := serve(t, h, q)
		judge(t, q, a)
		if a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s, want %s", path, a.status, a.body, want)
		}
	}
}
