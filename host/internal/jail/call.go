package jail

import (
	"bytes"
	"context"
	"encoding/json"
	"os"

	"skep/abi"
)

// Call is one call of an action.
type Call struct {
	Does   string // the action, see [Describe]
	Tenant string
	// Key is the same when a call is made again, Again says that it may have been
	// made before.
	Key   string
	Again bool
	Args  json.RawMessage
}

// args are those of any action.
type args struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
}

// deed does an action on a name within a root.
type deed func(j *Jail, ctx context.Context, root *os.Root, c Call, a args) (any, *abi.Error)

// Do does an action. Its answer is JSON.
func (j *Jail) Do(ctx context.Context, c Call) (json.RawMessage, *abi.Error) {
	a, fault := read(c.Args)
	if fault != nil {
		return nil, fault
	}
	do, writes := deeds(c.Does)
	switch {
	case do == nil:
		return nil, fail(abi.CodeUnsupported, "op", "there is no file action %.64q", c.Does)
	case writes && !j.opt.Write:
		return nil, fail(abi.CodeDenied, "write", "%s does not allow to change files; write = true does", j.opt.Table)
	case writes:
		leave, fault := j.alone(ctx, c.Tenant)
		if fault != nil {
			return nil, fault
		}
		defer leave()
	}
	root, fault := j.enter(c.Tenant, writes)
	if fault != nil {
		return nil, fault
	}
	if root == nil { // what nobody has written to is empty
		return nothing(c, a)
	}
	defer func() { _ = root.Close() }()
	answer, fault := do(j, ctx, root, c, a)
	if fault != nil {
		return nil, fault
	}
	return encode(answer)
}

// deeds finds an action, and whether it changes anything.
func deeds(does string) (do deed, writes bool) {
	switch does {
	case "read_file":
		return readFile, false
	case "read_directory":
		return readDirectory, false
	case "write_file":
		return writeFile, true
	case "create_directory":
		return createDirectory, true
	case "delete_file":
		return deleteFile, true
	}
	return nil, false
}

// nothing answers for a tenant that has no directory yet.
func nothing(c Call, a args) (json.RawMessage, *abi.Error) {
	if c.Does == "read_directory" && a.Path == "." {
		return encode("")
	}
	return nil, absent(a.Path)
}

func read(raw json.RawMessage) (a args, fault *abi.Error) {
	if err := abi.ReadRequest(raw, &a); err != nil {
		return a, fail(abi.CodeInvalid, "args", "the arguments: %v", err)
	}
	a.Path, fault = clean(a.Path)
	return a, fault
}

// encode writes an answer as JSON. Text stays readable.
func encode(v any) (json.RawMessage, *abi.Error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fail(abi.CodeInternal, "encode", "answer: %v", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
