package abi_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"skep/abi"
)

// sdkPackage type-checks the SDK's copy of the contract. It lies in another
// module, which this one does not require, so it is read as source.
func sdkPackage(t *testing.T) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	names, err := filepath.Glob("../sdk/go/internal/abi/*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no sources of the SDK's copy: %v", err)
	}
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: onlyJSON{}}
	pkg, err := conf.Check("skep/sdk/go/internal/abi", fset, files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// onlyJSON stands in for the one package the SDK's copy imports, of which it
// needs one type.
type onlyJSON struct{}

func (onlyJSON) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, "json")
	name := types.NewTypeName(token.NoPos, pkg, "RawMessage", nil)
	types.NewNamed(name, types.NewSlice(types.Typ[types.Byte]), nil)
	pkg.Scope().Insert(name)
	pkg.MarkComplete()
	return pkg, nil
}

func TestSDKHasTheHostsNumbers(t *testing.T) {
	t.Parallel()
	scope := sdkPackage(t).Scope()
	number := func(name string) (int64, bool) {
		c, ok := scope.Lookup(name).(*types.Const)
		if !ok {
			return 0, false
		}
		return constant.Int64Val(c.Val())
	}
	want := map[string]int64{
		"Version": abi.Version, "StatusOK": int64(abi.StatusOK), "StatusError": int64(abi.StatusError),
		"StatusNotImplemented": int64(abi.StatusNotImplemented),
	}
	for c := abi.CodeOK; c <= abi.CodeInternal; c++ {
		want["Code"+camel(c.String())] = int64(c)
	}
	for name, value := range want {
		if got, ok := number(name); !ok || got != value {
			t.Errorf("the SDK's %s is %d, the host's %d", name, got, value)
		}
	}
	var ops int
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && strings.HasSuffix(c.Type().String(), ".Op") {
			ops++
			value, _ := constant.Int64Val(c.Val())
			if _, ok := abi.Lookup(abi.Op(value)); !ok {
				t.Errorf("the SDK's %s is %d, which the host's table does not have", name, value)
			}
		}
	}
	if ops != len(abi.Ops()) {
		t.Errorf("the SDK names %d ops, the host %d", ops, len(abi.Ops()))
	}
}

// camel turns NOT_FOUND into NotFound, and OK stays.
func camel(name string) string {
	if name == "OK" {
		return name
	}
	var b strings.Builder
	for _, word := range strings.Split(name, "_") {
		b.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return b.String()
}

// Every JSON shape the SDK has must have the host's members.
func TestSDKHasTheHostsShapes(t *testing.T) {
	t.Parallel()
	scope := sdkPackage(t).Scope()
	shapes := []any{
		abi.TurnInput{}, abi.Task{}, abi.Agent{}, abi.Tool{}, abi.History{}, abi.HistoryEntry{}, abi.Call{}, abi.Result{},
		abi.Budget{}, abi.TurnResult{}, abi.MailRequest{}, abi.MailResponse{}, abi.HistoryRequest{}, abi.HistoryResponse{},
		abi.LogRequest{}, abi.ClockResponse{}, abi.RandomResponse{}, abi.EmitRequest{}, abi.Progress{}, abi.EmitResponse{},
		abi.KVGetRequest{}, abi.KVGetResponse{}, abi.KVPutRequest{}, abi.KVListRequest{}, abi.KVListResponse{}, abi.KVCasRequest{}, abi.KVCasResponse{},
		abi.TimerRequest{}, abi.TimerResponse{}, abi.TimerCancelRequest{}, abi.FetchRequest{}, abi.FetchResponse{},
		abi.SecretRequest{}, abi.SecretResponse{}, abi.BlobPutRequest{}, abi.BlobPutResponse{}, abi.BlobGetRequest{}, abi.BlobGetResponse{},
		abi.MetricRequest{}, abi.SpanRequest{}, abi.SpanResponse{},
		abi.ChatRequest{}, abi.ChatMessage{}, abi.ChatCall{}, abi.ChatResponse{}, abi.ChatUsage{}, abi.ChatPiece{},
	}
	for _, shape := range shapes {
		host := reflect.TypeOf(shape)
		obj := scope.Lookup(host.Name())
		if obj == nil {
			t.Errorf("the SDK has no %s", host.Name())
			continue
		}
		sdk, ok := obj.Type().Underlying().(*types.Struct)
		if !ok {
			t.Errorf("the SDK's %s is no struct", host.Name())
			continue
		}
		if got, want := sdkMembers(sdk), hostMembers(host); !maps.Equal(got, want) {
			t.Errorf("%s: the SDK has %v, the host %v", host.Name(), slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

func sdkMembers(s *types.Struct) map[string]string {
	members := map[string]string{}
	for i := range s.NumFields() {
		members[reflect.StructTag(s.Tag(i)).Get("json")] = base(s.Field(i).Type().String())
	}
	return members
}

func hostMembers(s reflect.Type) map[string]string {
	members := map[string]string{}
	for i := range s.NumField() {
		members[s.Field(i).Tag.Get("json")] = base(s.Field(i).Type.String())
	}
	return members
}

// base drops the package path of a type's name: both sides have their own.
func base(name string) string {
	name = strings.ReplaceAll(name, "encoding/json.", "json.")
	name = strings.ReplaceAll(name, "skep/sdk/go/internal/abi.", "")
	name = strings.ReplaceAll(name, "abi.", "")
	name = strings.ReplaceAll(name, "[]uint8", "[]byte")
	return strings.ReplaceAll(strings.ReplaceAll(name, "interface {}", "any"), "interface{}", "any")
}

func TestSDKHasTheHostsOpNames(t *testing.T) {
	t.Parallel()
	pairs := stringPairs(t, "../sdk/go/internal/abi/const.go", "Ops")
	scope := sdkPackage(t).Scope()
	for i, row := range abi.Ops() {
		if i >= len(pairs) || pairs[i][1] != row.Name {
			t.Fatalf("row %d of the SDK's op table is %v, the host's %s", i, pairs, row.Name)
		}
		c, ok := scope.Lookup(pairs[i][0]).(*types.Const)
		if !ok {
			t.Fatalf("%s is no constant", pairs[i][0])
		}
		if value, _ := constant.Int64Val(c.Val()); abi.Op(value) != row.Op {
			t.Errorf("the SDK's %s is op %d, the host's %d", row.Name, value, row.Op)
		}
	}
	if len(pairs) != len(abi.Ops()) {
		t.Errorf("the SDK's op table has %d rows, the host's %d", len(pairs), len(abi.Ops()))
	}
}

// stringPairs reads the {Name, "text"} rows that a function returns.
func stringPairs(t *testing.T, file, function string) (pairs [][2]string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != function {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			row, ok := n.(*ast.CompositeLit)
			if !ok || len(row.Elts) != 2 {
				return true
			}
			name, isName := row.Elts[0].(*ast.Ident)
			text, isText := row.Elts[1].(*ast.BasicLit)
			if isName && isText {
				pairs = append(pairs, [2]string{name.Name, strings.Trim(text.Value, `"`)})
			}
			return true
		})
	}
	return pairs
}
