package storetest

import (
	"encoding/json"
	"strings"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

var payloadCases = cases{
	"a megabyte in every body":      payloadLarge,
	"any character in any name":     payloadNames,
	"more than a parser would take": payloadBeyondLimits,
}

func payloadLarge(t *testing.T, s Store) {
	big := strings.Repeat("0123456789abcde\n", 1<<16)
	text, err := json.Marshal(big)
	if err != nil {
		t.Fatal(err)
	}
	st := newTask(alice, "t1")
	step, post := st.post("rest", "k1", big)
	step.Events[0].Extra = text
	step.History = []swarm.AgentEntry{st.note("supervisor", big)}
	step.States = []swarm.AgentState{{Agent: "supervisor", State: text}}
	mustAccept(t, s, step, post)

	same(t, "snapshot", mustLoad(t, s, st.key()), swarm.Snapshot{
		Task: step.Task, Rows: step.Insert, Posts: pending(post), States: states{"supervisor": text},
	})
	same(t, "events", mustEvents(t, s, st.key()), step.Events)
	same(t, "history", mustHistory(t, s, st.key(), "supervisor"), []abi.HistoryEntry{step.History[0].Entry})
}

func payloadNames(t *testing.T, s Store) {
	for _, odd := range []string{
		"", " ", "\x00", "a\x00b", "a\x00", "'; DROP TABLE tasks; --", "Grüße 🐝", "a\x1fb", "\u2028", `"\`, "%s?#&",
	} {
		k := swarm.InstanceKey{Tenant: odd + "t", Swarm: odd + "s", Instance: odd + "i"}
		st := newTask(k, odd+"id")
		step, post := st.post(odd, odd+"key", "hello")
		note := st.note(odd, odd)
		step.History, step.States = []swarm.AgentEntry{note}, []swarm.AgentState{{Agent: odd, State: raw(`1`)}}
		mustAccept(t, s, step, post)

		same(t, "snapshot", mustLoad(t, s, st.key()), swarm.Snapshot{
			Task: step.Task, Rows: step.Insert, Posts: pending(post), States: states{odd: raw(`1`)},
		})
		same(t, "submission", mustSubmission(t, s, k, odd, odd+"key"), post)
		same(t, "history", mustHistory(t, s, st.key(), odd), []abi.HistoryEntry{note.Entry})
		instances, err := s.Instances(t.Context(), k.Tenant, k.Swarm)
		same(t, "instances", instances, []swarm.InstanceKey{k})
		same(t, "error", err, nil)
		if _, runs := mustClaim(t, s)[st.key()]; !runs {
			t.Errorf("Claim() lacks %q", st.key())
		}
	}
}

// What was accepted must be readable, also when the door that took it had
// wider limits than the parser of messages has by itself.
func payloadBeyondLimits(t *testing.T, s Store) {
	st := newTask(alice, "t1")
	row := st.row("all", strings.Repeat("x", mail.DefaultBytes+1))
	row.Message.Type = mail.Broadcast
	for i := range 2 * mail.DefaultRecipients {
		row.Message.Payload.Recipients = append(row.Message.Payload.Recipients, mail.Address{Type: mail.Agent, Name: "agent" + name(i)})
	}
	step := st.mutation()
	step.Insert = []swarm.Row{row}
	mustCommit(t, s, step)
	same(t, "rows", mustLoad(t, s, st.key()).Rows, step.Insert)
}
