package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"

	"skep/host/internal/swarm"
)

// A blob is kept once for its tenant, under a name that only the tenant's naming
// key makes of its address: the file does not show what is in it. The
// key is sealed as all the tenant has. A blob goes with the last task that uses
// it.

// blob is one that a step puts, as the writer takes it.
type blob struct{ name, body []byte }

const findBlob = "SELECT bid FROM blobs WHERE tenant = ? AND name = ?"

// blobStmts writes blobs.
type blobStmts struct {
	addNamer             *sql.Stmt
	add, find, use, drop *sql.Stmt
}

func (b *blobStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&b.addNamer: "INSERT INTO namers VALUES (?, ?) ON CONFLICT DO NOTHING",
		&b.add:      "INSERT INTO blobs (tenant, name, body) VALUES (?, ?, ?) ON CONFLICT (tenant, name) DO NOTHING",
		&b.find:     findBlob,
		&b.use:      "INSERT INTO blob_uses VALUES (?, ?) ON CONFLICT DO NOTHING",
		&b.drop: `DELETE FROM blobs WHERE bid = ?1 AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE bid = ?1)
			RETURNING length(name) + length(body)`,
	}
}

// encodeBlobs seals what a step puts.
func (s *Store) encodeBlobs(ctx context.Context, e *encodedMutation, st swarm.Mutation) error {
	if len(st.Blobs) == 0 {
		return nil
	}
	c := e.closer
	c.place = tenantPlace(e.key.Tenant)
	key, err := s.naming(ctx, c, e.key.Tenant, st.MarkEncoded)
	if err != nil {
		return err
	}
	for _, b := range st.Blobs {
		body, err := wrap(b.Data)
		if err != nil {
			return err
		}
		name := blobName(key, b.ID)
		body = c.close(compress(body), spot{inBlobs, string(name), 0})
		e.blobs = append(e.blobs, blob{name, body})
		e.size += len(body)
	}
	return nil
}

func tenantPlace(tenant string) place {
	return placeOf(swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant}})
}

func blobName(key []byte, id swarm.BlobID) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(id[:])
	return mac.Sum(nil)
}

// naming returns a tenant's naming key, and makes it for its first blob. beforeWrite is called before
// that is written.
func (s *Store) naming(ctx context.Context, c closer, tenant string, beforeWrite func()) ([]byte, error) {
	key, err := s.namer(ctx, tenant)
	if !errors.Is(err, swarm.ErrNotFound) {
		return key, err
	}
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	body, err := wrap(fresh)
	if err == nil {
		beforeWrite()
		err = s.writer.submit(ctx, &namerWrite{c, tenant, c.close(body, spot{inNamers, "", 0})})
	}
	if err != nil {
		return nil, err
	}
	return s.namer(ctx, tenant) // another may have been first
}

// namer returns a tenant's naming key, or [swarm.ErrNotFound].
func (s *Store) namer(ctx context.Context, tenant string) ([]byte, error) {
	var body []byte
	err := s.readers.query(s.readers.namer, []byte(tenant)).first(ctx, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = swarm.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return opener{s.codec, tenantPlace(tenant)}.open(body, spot{inNamers, "", 0})
}

// namerWrite gives a tenant a naming key, unless it has one.
type namerWrite struct {
	closer closer
	tenant string
	body   []byte
}

func (n *namerWrite) bytes() int { return len(n.body) }

func (n *namerWrite) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := t.useKey(ctx, n.closer.key(), n.tenant); err != nil {
		return 0, err
	}
	r, err := t.blobbing.addNamer.ExecContext(ctx, []byte(n.tenant), n.body)
	if err != nil {
		return 0, err
	}
	added, err := r.RowsAffected()
	t.delta.add(n.tenant, added*int64(len(n.body)), 0)
	return 0, err
}

// applyBlobs adds blobs that the tenant does not have, and notes for all that the
// task uses them.
func (e *encodedMutation) applyBlobs(ctx context.Context, t *tables, ref *taskRef) error {
	tenant := []byte(e.key.Tenant)
	for _, b := range e.blobs {
		bid, added, err := t.number(ctx, t.blobbing.add, t.blobbing.find, []any{tenant, b.name}, b.body)
		if err != nil {
			return err
		}
		if added {
			t.delta.add(e.key.Tenant, int64(len(b.name)+len(b.body)), 0)
		}
		if _, err := t.blobbing.use.ExecContext(ctx, ref.tid, bid); err != nil {
			return err
		}
	}
	return nil
}

// blobCost is how many bytes of a blob count as one entry of a slice of deleting.
const blobCost = 64 << 10

// dropBlob deletes a blob that is no longer used.
func (d *deletion) dropBlob(ctx context.Context, bid any) error {
	if d.shared != nil { // the deletion must see whether a host that used it meanwhile has committed
		if _, err := d.shared.lockBlob.ExecContext(ctx, bid); err != nil {
			return err
		}
	}
	var size int64
	err := d.blobbing.drop.QueryRowContext(ctx, bid).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	d.left -= int(size / blobCost)
	d.delta.add(d.tenant, -size, 0)
	return err
}

// Blob implements [swarm.Blobs].
func (s *Store) Blob(ctx context.Context, tenant string, id swarm.BlobID) ([]byte, error) {
	data, err := s.blob(ctx, tenant, id)
	return data, wrapError("read blob", id.String(), err)
}

func (s *Store) blob(ctx context.Context, tenant string, id swarm.BlobID) ([]byte, error) {
	key, err := s.namer(ctx, tenant)
	if err != nil {
		return nil, err
	}
	name := blobName(key, id)
	return s.openBlob(ctx, tenant, name, s.readers.query(s.readers.blob, []byte(tenant), name))
}

// TaskBlob implements [swarm.Blobs].
func (s *Store) TaskBlob(ctx context.Context, key swarm.TaskKey, id swarm.BlobID) ([]byte, error) {
	naming, err := s.namer(ctx, key.Tenant)
	if err != nil {
		return nil, wrapError("read blob", id.String(), err)
	}
	name := blobName(naming, id)
	data, err := s.openBlob(ctx, key.Tenant, name, s.readers.query(s.readers.taskBlob, append(taskArgs(key), name)...))
	return data, wrapError("read blob", id.String(), err)
}

func (s *Store) openBlob(ctx context.Context, tenant string, name []byte, q query) ([]byte, error) {
	var body []byte
	err := q.first(ctx, &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = swarm.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return opener{s.codec, tenantPlace(tenant)}.open(body, spot{inBlobs, string(name), 0})
}
