package capability

import (
	"context"
	"strings"
	"testing"

	"skep/abi"
)

// What the ABI says is built has a handler, and nothing else has; the sandbox
// itself answers last_error.
func TestTableIsTheABIs(t *testing.T) {
	t.Parallel()
	all := builtinOps()
	for _, row := range abi.Ops() {
		h, ok := all[row.Op]
		delete(all, row.Op)
		if row.Op == abi.OpLastError {
			continue
		}
		if ok != row.Built {
			t.Errorf("%s: built %v, handled %v", row.Name, row.Built, ok)
		}
		if ok && ways(h) != 1 || ok && (h.effect != nil || h.dispatch != nil && h.direct == nil && row.Class != abi.ClassNone) != (row.Class == abi.ClassEffect) {
			t.Errorf("%s: its handler does not fit its class", row.Name)
		}
	}
	for op := range all {
		t.Errorf("%s has a handler, but is no op", op)
	}
}

// What this host lacks says so, and what to do.
func TestUnsupportedOps(t *testing.T) {
	t.Parallel()
	for op, want := range map[abi.Op]string{
		999:           "UNSUPPORTED: this host (ABI 1) has no op 999; upgrade skep, or build the module without it",
		-1:            "UNSUPPORTED: this host (ABI 1) has no op -1; upgrade skep, or build the module without it",
		abi.OpBlobGet: "UNSUPPORTED: this host (ABI 1) does not offer op 80 (blob.get) yet; upgrade skep, or build the module without it",
	} {
		ops := builtinOps()
		delete(ops, abi.OpBlobGet)
		o := bareOps(t, ops)
		_, called := o.Call(t.Context(), op, nil)
		answer, submitted := o.Submit(t.Context(), op, nil)
		if called == nil || submitted == nil || called.Error() != want || *called != *submitted || answer != nil {
			t.Errorf("%v and %v, want %s", called, submitted, want)
		}
	}
}

// Ops that wait for nothing are done in the order in which they are submitted,
// and are ready at once; an op's own error comes with its answer.
func TestSubmittedInOrder(t *testing.T) {
	t.Parallel()
	var order []string
	note := handler{direct: func(_ *ops, _ context.Context, req []byte) ([]byte, *abi.Error) {
		order = append(order, string(req))
		if string(req) == "no" {
			return nil, abi.Errorf(abi.CodeConflict, abi.OpKVPut, "", "no")
		}
		return req, nil
	}}
	o, clock := withOps(t, table{abi.OpKVPut: note, abi.OpMail: note})
	start := clock.Now()
	for _, req := range []string{"a", "b", "no"} {
		if _, fault := o.Submit(t.Context(), abi.OpKVPut, []byte(req)); fault != nil {
			t.Error(fault)
		}
	}
	refused, _ := o.Submit(t.Context(), abi.OpMail, []byte("no"))
	done, _ := o.Submit(t.Context(), abi.OpMail, []byte("c"))
	if n, fault := o.Wait(t.Context(), answers(refused, done), -1); n != 0 || fault != nil {
		t.Errorf("the first ready is %d, %v", n, fault)
	}
	buf := make([]byte, 9)
	if _, fault := refused.Read(t.Context(), buf); fault == nil || fault.Code != abi.CodeConflict {
		t.Errorf("read %v", fault)
	}
	if n, fault := done.Read(t.Context(), buf); string(buf[:n]) != "c" || fault != nil {
		t.Errorf("read %q, %v", buf[:n], fault)
	}
	if got := strings.Join(order, " "); got != "a b no no c" {
		t.Errorf("done in the order %s", got)
	}
	if clock.Now() != start {
		t.Error("the clock has moved")
	}
}

// Once the turn is called off, every op is refused but log.
func TestCalledOff(t *testing.T) {
	t.Parallel()
	all := table{}
	for _, row := range abi.Ops() {
		all[row.Op] = handler{direct: func(*ops, context.Context, []byte) ([]byte, *abi.Error) { return nil, nil }}
	}
	o, _ := withOps(t, all)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for op := range all {
		_, called := o.Call(ctx, op, nil)
		_, submitted := o.Submit(ctx, op, nil)
		for _, fault := range []*abi.Error{called, submitted} {
			if (fault == nil) != (op == abi.OpLog) || fault != nil && (fault.Code != abi.CodeCancelled || fault.Op != op.String()) {
				t.Errorf("%s: %+v", op, fault)
			}
		}
	}
}
