package definition

import (
	"errors"
	"testing"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/model"
)

// A model is silent from its first call without an answer on, until one is answered, even by a refusal; a
// call that was not made or was given up here changes nothing.
func TestSilentModels(t *testing.T) {
	t.Parallel()
	p := newModelProviders(nil, nil)
	fail := func(kind model.Kind, short string) error { return &model.Error{Kind: kind, Name: "m", Short: short} }
	for i, c := range []struct {
		err   error
		calls int64
		cause string
	}{
		{nil, 0, ""},
		{fail(model.Unavailable, "connection refused"), 1, "connection refused"},
		{fail(model.Resting, "rests: connection refused"), 1, "connection refused"},
		{errors.New("given up"), 1, "connection refused"},
		{fail(model.Auth, ""), 2, "auth"},
		{fail(model.Refused, ""), 0, ""},
		{fail(model.Overloaded, ""), 1, "overloaded"},
		{fail(model.RateLimited, ""), 0, ""},
		{fail(model.Malformed, ""), 1, "malformed"},
		{nil, 0, ""},
		{fail(model.Unavailable, ""), 1, "unavailable"},
	} {
		p.count("m", c.err, abi.ChatUsage{}, swarm.Spend{})
		list := p.silentModels()
		if c.calls == 0 && len(list) > 0 || c.calls > 0 && (len(list) != 1 || list[0].Name != "m" || list[0].Calls != c.calls || list[0].Cause != c.cause || list[0].Since.IsZero()) {
			t.Errorf("after call %d, %v: %+v", i, c.err, list)
		}
	}
	p.forgetSilence()
	if list := p.silentModels(); len(list) > 0 {
		t.Errorf("after a reload: %+v", list)
	}
}
