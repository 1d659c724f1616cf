package conform

import (
	"context"
	"testing"

	"skep/abi"
	"skep/host/internal/turn"
)

// Who submits llm.chat reads lines; who calls it, and any other op, gets one body.
func TestChatIsReadInLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op           abi.Op
		answer, want string
	}{
		{abi.OpLLMChat, `{"text":"a","tool_calls":[],"usage":{}}`, "{\"delta\":\"a\"}\n{\"end\":{\"tool_calls\":[],\"usage\":{}}}\n"},
		{abi.OpLLMChat, `{"added":"x"}   `, "{\"end\":{\"added\":\"x\"}}   \n"},
		{abi.OpLLMChat, `nonsense`, `nonsense`},
		{abi.OpKVGet, `{"text":"a"}`, `{"text":"a"}`},
	} {
		ops := streaming{turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) { return []byte(c.answer), nil })}
		a, err := ops.Submit(t.Context(), c.op, nil)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 200)
		n, err := a.Read(t.Context(), buf)
		if err != nil || string(buf[:n]) != c.want {
			t.Errorf("%q, %v, want %q", buf[:n], err, c.want)
		}
		if whole, err := ops.Call(t.Context(), c.op, nil); err != nil || string(whole) != c.answer {
			t.Errorf("%q, %v", whole, err)
		}
	}
	refused := streaming{turn.OpsFunc(func(context.Context, abi.Op, []byte) ([]byte, *abi.Error) {
		return nil, abi.Errorf(abi.CodeLimit, abi.OpLLMChat, "tokens", "enough")
	})}
	a, _ := refused.Submit(t.Context(), abi.OpLLMChat, nil)
	if _, err := a.Read(t.Context(), make([]byte, 1)); err == nil || err.Code != abi.CodeLimit {
		t.Errorf("%v", err)
	}
}
