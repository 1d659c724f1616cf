package swarm

import (
	"encoding/json"
	"testing"

	"skep/spec/mail"
)

// The log is JSON, whatever is logged.
func TestEventOfAMessageThatCannotBe(t *testing.T) {
	t.Parallel()
	var s mutationBuilder
	s.logMessage(mail.Message{}, map[string]any{"recipient": "a"})
	if got := string(s.Events[0].Extra); got != `{"full_message":null,"recipient":"a"}` || !json.Valid(s.Events[0].Extra) {
		t.Errorf("logged %s", got)
	}
}
