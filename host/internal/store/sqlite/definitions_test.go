package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/host/internal/store/keyring"
	"skep/host/internal/swarm"
)

func testDefinition(tenant, digest string) Definition {
	return Definition{Tenant: tenant, Swarm: "hive", Digest: digest, Created: testTime, Body: []byte(`{"marked":"` + digest + `"}`)}
}

func testLoaded(text string) Loaded {
	return Loaded{Tenant: "acme", Swarm: "hive", At: testTime, By: "acme/admin:ann", Text: []byte(text)}
}

// Definitions outlive the store, sealed where they are a tenant's, also with a key
// that comes later, and go with their tenant.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSealed(t, dir, &keyring.Options{})
	ctx := t.Context()
	mustDo(t, s.AddDefinition(ctx, testDefinition("", "file")))
	mustDo(t, s.AddDefinition(ctx, testDefinition("", "file")))
	mustDo(t, s.LoadDefinition(ctx, testLoaded("first"), testDefinition("acme", "one")))
	mustDo(t, s.LoadDefinition(ctx, testLoaded("second"), testDefinition("acme", "two")))
	mustDo(t, s.Close())

	s = openSealed(t, dir, &keyring.Options{})
	loaded, err := s.Loaded(ctx)
	if diff := cmp.Diff([]Loaded{testLoaded("second")}, loaded); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	mustDo(t, s.Rotate(ctx, "acme"))
	for _, want := range []Definition{testDefinition("", "file"), testDefinition("acme", "one"), testDefinition("acme", "two")} {
		got, err := s.Definition(ctx, want.Tenant, want.Swarm, want.Digest)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	var sealed [][]byte
	for _, from := range []string{"definitions WHERE length(tenant) > 0", "loaded"} {
		rows, err := openRaw(t, dir).QueryContext(ctx, "SELECT body FROM "+from)
		list, err := collect(rows, err, scanBody)
		mustDo(t, err)
		sealed = append(sealed, list...)
	}
	kept := 0
	for _, body := range sealed {
		kept += len(body)
		if sealedWith(body) == 0 {
			t.Errorf("%q is not sealed", body)
		}
	}
	if f, err := s.Footprint(ctx, "acme"); f.Bytes != int64(kept) || len(sealed) != 3 || err != nil {
		t.Errorf("%d bytes are counted of %d bodies, want %d, %v", f.Bytes, len(sealed), kept, err)
	}
	var out bytes.Buffer
	mustDo(t, s.Export(ctx, "acme", &out))
	for _, want := range []string{`"kind":"definition"`, `"marked":"one"`, `"kind":"loaded_definition"`, `second`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the export lacks %s:\n%s", want, out.String())
		}
	}
	mustDo(t, s.DropDefinition(ctx, "acme", "hive", "one"))
	mustDo(t, s.UnloadDefinition(ctx, "acme", "hive"))
	if _, err := s.Definition(ctx, "acme", "hive", "one"); !errors.Is(err, swarm.ErrNotFound) {
		t.Error(err)
	}
	mustDo(t, s.LoadDefinition(ctx, testLoaded("third"), testDefinition("acme", "two")))
	mustDo(t, s.Erase(ctx, "acme"))
	left, err := s.Definitions(ctx)
	if len(left) != 1 || left[0].Digest != "file" || err != nil {
		t.Errorf("%+v, %v", left, err)
	}
	if loaded, err = s.Loaded(ctx); len(loaded) != 0 || err != nil {
		t.Errorf("%+v, %v", loaded, err)
	}
	if f, err := s.Footprint(ctx, "acme"); f.Bytes != 0 || err != nil {
		t.Errorf("%+v, %v", f, err)
	}
}

// Only tasks that run or are paused name definitions.
func TestNamedDefinitions(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir())
	put := func(task, digest string, state swarm.State, seq int64) {
		t.Helper()
		st := testStep(task, seq)
		st.Task.Definition, st.Task.State = digest, state
		mustDo(t, s.Commit(t.Context(), st))
	}
	put("runs", "a", swarm.StateRunning, 1)
	put("waits", "b", swarm.StatePaused, 1)
	put("ended", "c", swarm.StateRunning, 1)
	put("ended", "c", swarm.StateCompleted, 2)
	put("again", "c", swarm.StateCompleted, 1)
	put("again", "d", swarm.StateRunning, 2)
	put("none", "", swarm.StateRunning, 1)
	named, err := s.NamedDefinitions(t.Context())
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true, "d": true}, named); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func scanBody(rows *sql.Rows) (b []byte, err error) {
	err = rows.Scan(&b)
	return b, err
}

// A tenant whose erasure was cut short, with its key destroyed, has nothing in force, and
// hides nothing of other tenants. Its records name no modules.
func TestLoadedDuringErasure(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]*keyring.Options{"plain": nil, "sealed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSealed(t, t.TempDir(), keys)
			ctx := t.Context()
			other := testLoaded("other")
			other.Tenant = "bolt"
			mustDo(t, s.LoadDefinition(ctx, testLoaded("text"), testDefinition("acme", "one")))
			mustDo(t, s.LoadDefinition(ctx, other, testDefinition("bolt", "one")))
			plant(t, s, "acme", "t1", "acme's")
			plant(t, s, "bolt", "t1", "bolt's")
			mustDo(t, s.writer.submit(ctx, choreNote{chore{choreErase, "acme"}}))
			if keys != nil {
				mustDo(t, s.codec.ring.Destroy("acme"))
			}
			loaded, err := s.Loaded(ctx)
			if diff := cmp.Diff([]Loaded{other}, loaded); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
			if named, err := s.Modules(ctx); !named["bolt's"] || err != nil {
				t.Errorf("%v, %v", named, err)
			}
		})
	}
}
