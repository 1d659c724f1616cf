package client

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// piece writes an event of what an agent shows; an id of 0 is none.
func piece(id int, name, extra string) string {
	head := ""
	if id > 0 {
		head = fmt.Sprintf("id: %d\r\n", id)
	}
	return head + "event: " + name + "\r\ndata: {\"timestamp\":\"x\",\"description\":\"d\",\"task_id\":\"t\",\"extra_data\":" + extra + "}\r\n\r\n"
}

// Pieces come through without a cursor, and a reader that was cut off comes
// again behind the last event of the log.
func TestStreamGivesEmissions(t *testing.T) {
	t.Parallel()
	half := 0.5
	c := streaming(t, Options{},
		connection{"", event(3, "new_message") +
			piece(0, EventProgress, `{"caller":"boss","turn":1,"n":1,"text":"half","fraction":0.5}`) +
			piece(0, EventChunk, `{"caller":"boss","turn":1,"n":2,"text":"Hel"}`), true, 0},
		connection{"3", piece(0, EventNote, `{"caller":"boss","turn":1,"n":4,"text":"x"}`) +
			piece(4, EventOutput, `{"caller":"boss","turn":1,"n":4,"text":"Hello","progress":{"text":"half","fraction":0.5},"failed":true}`) +
			finish, false, 0})
	type got struct {
		Cursor   int64
		Volatile bool
		Emission Emission
	}
	var all []got
	for e, err := range c.Stream(t.Context(), "a/b", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := e.Emission(); ok {
			all = append(all, got{e.Cursor, e.Volatile(), m})
		} else if e.Volatile() {
			t.Errorf("%s is volatile", e.Name)
		}
	}
	progress := &Progress{"half", &half}
	want := []got{
		{0, true, Emission{Agent: "boss", Turn: 1, N: 1, Text: "half", Progress: progress}},
		{0, true, Emission{Agent: "boss", Turn: 1, N: 2, Text: "Hel"}},
		{0, true, Emission{Agent: "boss", Turn: 1, N: 4, Text: "x"}},
		{4, false, Emission{Agent: "boss", Turn: 1, N: 4, Text: "Hello", Progress: progress, Failed: true}},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestEmissionOfStrangeEvents(t *testing.T) {
	t.Parallel()
	for _, e := range []Event{
		{Name: "new_message", Extra: []byte(`{"caller":"a","turn":1,"n":1,"text":"x"}`)},
		{Name: EventChunk}, {Name: EventChunk, Extra: []byte(`{"text":7}`)}, {Name: EventOutput, Extra: []byte(`[]`)},
	} {
		if m, ok := e.Emission(); ok {
			t.Errorf("%s %s is %+v", e.Name, e.Extra, m)
		}
	}
}
