package agent_test

import (
	"bytes"
	"testing"
)

// The log of a start says where each model's answers come from.
func TestModelSourceIsLogged(t *testing.T) {
	t.Parallel()
	_, log := startModelHost(t, startModels(t))
	for _, want := range []string{
		`"msg":"model","model":"good","way":"asks its provider, openai"`,
		`"msg":"model","model":"odd","way":"asks its provider, anthropic"`,
	} {
		if !bytes.Contains(log.Bytes(), []byte(want)) {
			t.Errorf("the log has no %s", want)
		}
	}
}
