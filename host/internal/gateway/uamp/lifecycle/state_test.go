package lifecycle_test

import (
	"errors"
	"testing"

	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/lifecycle"
)

// TestBegin (U-080–U-087, U-090): the state of each intent once it was delivered.
func TestBegin(t *testing.T) {
	t.Parallel()
	want := map[envelope.Intent]lifecycle.State{
		envelope.Ask: lifecycle.InProgress, envelope.Propose: lifecycle.InProgress, envelope.Subscribe: lifecycle.InProgress, envelope.Error: lifecycle.Failed,
		envelope.Inform: lifecycle.Completed, envelope.Confirm: lifecycle.Completed, envelope.Deny: lifecycle.Completed, envelope.Progress: lifecycle.Completed,
		envelope.Cancel: lifecycle.Completed, envelope.Notify: lifecycle.Completed,
	}
	for _, intent := range envelope.Intents() {
		if got := lifecycle.Begin(intent); got != want[intent] {
			t.Errorf("%s is %s, want %s", intent, got, want[intent])
		}
	}
}

// outcomes are the letters of the table: the state after it, = for no change, and for
// refusals x (4.22) and f (4.03).
var outcomes = map[byte]lifecycle.State{'P': lifecycle.InProgress, 'C': lifecycle.Completed, 'X': lifecycle.Cancelled, 'E': lifecycle.Failed}

// TestTable (V-U29, V-U30, V-U32, U-088–U-092): every intent in every state, of each kind
// of request, from its sender and from another agent. The columns are the intents in the
// order of the document: ask, inform, propose, confirm, deny, progress, cancel, subscribe,
// notify, error.
func TestTable(t *testing.T) {
	t.Parallel()
	type rows map[lifecycle.State]string
	other := map[envelope.Intent]rows{
		envelope.Ask: {
			lifecycle.New: "=C=CE=f==E", lifecycle.InProgress: "=C=CE=f==E",
			lifecycle.Completed: "===Cxxf=xx", lifecycle.Cancelled: "===xxxf=xx", lifecycle.Failed: "===xExf=xE",
		},
		envelope.Propose: {
			lifecycle.New: "===CC=f==E", lifecycle.InProgress: "===CC=f==E",
			lifecycle.Completed: "===CCxf=xx", lifecycle.Cancelled: "===xxxf=xx", lifecycle.Failed: "===xxxf=xE",
		},
		envelope.Subscribe: {
			lifecycle.New: "===CE=f==E", lifecycle.InProgress: "===CE=f==E",
			lifecycle.Completed: "===Cxxf=xx", lifecycle.Cancelled: "===xxxf=xx", lifecycle.Failed: "===xExf=xE",
		},
	}
	own := rows{
		lifecycle.New: "===xx=X==x", lifecycle.InProgress: "===xx=X==x",
		lifecycle.Completed: "===xx====x", lifecycle.Cancelled: "===xx====x", lifecycle.Failed: "===xx====x",
	}
	for asked, table := range other {
		for _, state := range lifecycle.States() {
			x := lifecycle.Exchange{Intent: asked, State: state}
			for i, intent := range envelope.Intents() {
				checkCell(t, x, intent, false, table[state][i])
				checkCell(t, x, intent, true, own[state][i])
			}
		}
	}
}

func checkCell(t *testing.T, x lifecycle.Exchange, intent envelope.Intent, own bool, letter byte) {
	t.Helper()
	want, changes := outcomes[letter]
	if !changes {
		want = x.State
	}
	code := map[byte]envelope.Code{'x': envelope.IllegalState, 'f': envelope.Unauthorized}[letter]
	got, err := x.Next(intent, own)
	var f *envelope.Fault
	if errors.As(err, &f); got != want || (f == nil) != (code == "") || f != nil && f.Code != code {
		t.Errorf("%s in %s, %s of its sender %v: %s, %v; want %c", x.Intent, x.State, intent, own, got, err, letter)
	}
}
