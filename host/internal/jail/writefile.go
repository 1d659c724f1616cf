package jail

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"

	"skep/abi"
)

// writeFile puts a file in its place, and makes the directories above it.
func writeFile(j *Jail, ctx context.Context, root *os.Root, c Call, a args) (any, *abi.Error) {
	content, fault := j.content(a)
	if fault != nil {
		return nil, fault
	}
	was, fault := before(root, a.Path)
	if fault != nil {
		return nil, fault
	}
	mode, more, names := os.FileMode(fileMode), int64(len(content)), depth(a.Path)
	if was != nil {
		mode, more, names = was.Mode().Perm(), more-was.Size(), 0
	}
	if fault := j.room(ctx, root, a.Path, more, names); fault != nil {
		return nil, fault
	}
	if err := root.MkdirAll(path.Dir(a.Path), dirMode); err != nil {
		return nil, wrong(a.Path, err)
	}
	part := path.Join(path.Dir(a.Path), partName(c.Key))
	if err := put(root, part, a.Path, content, mode); err != nil {
		return nil, wrong(a.Path, errors.Join(err, remove(root, part)))
	}
	return "successfully wrote to " + a.Path, nil
}

// content is what is to be written.
func (j *Jail) content(a args) ([]byte, *abi.Error) {
	content := []byte(a.Content)
	switch a.Encoding {
	case "":
	case base64Encoding:
		var err error
		if content, err = base64.StdEncoding.Strict().DecodeString(a.Content); err != nil {
			return nil, fail(abi.CodeInvalid, "content", "content is not base64 of RFC 4648 with padding")
		}
	default:
		return nil, fail(abi.CodeInvalid, "encoding", "encoding must be %q or left out, not %.64q", base64Encoding, a.Encoding)
	}
	if int64(len(content)) > j.opt.MaxFile {
		return nil, fail(abi.CodeLimit, "max_file", "the content has %d bytes, at most %d; %s max_file allows more", len(content), j.opt.MaxFile, j.opt.Table)
	}
	return content, nil
}

// before is the file that is replaced, nil for none.
func before(root *os.Root, p string) (os.FileInfo, *abi.Error) {
	is, err := root.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, wrong(p, err)
	case is.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is a directory", p)
	case !is.Mode().IsRegular():
		return nil, fail(abi.CodeDenied, "path", "%.100q is no regular file, and is not replaced by one", p)
	}
	return is, nil
}

// partName is that of a file which is not whole yet. A call that is made again has
// the same.
func partName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return partPrefix + hex.EncodeToString(sum[:8])
}

// put writes a part and gives it its name. A part is left when it fails.
func put(root *os.Root, part, p string, content []byte, mode os.FileMode) error {
	if err := remove(root, part); err != nil {
		return err
	}
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := root.Rename(part, p); err != nil {
		return err
	}
	return lasts(root, path.Dir(p))
}

// remove removes a file that need not be there.
func remove(root *os.Root, p string) error {
	if err := root.Remove(p); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// deleteFile removes a file. It is done when a call that was made before finds none.
func deleteFile(_ *Jail, _ context.Context, root *os.Root, c Call, a args) (any, *abi.Error) {
	done := "successfully deleted " + a.Path
	is, err := root.Lstat(a.Path)
	switch {
	case c.Again && errors.Is(err, fs.ErrNotExist):
		return done, nil
	case err != nil:
		return nil, wrong(a.Path, err)
	case is.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is a directory; only files are deleted", a.Path)
	case !is.Mode().IsRegular():
		return nil, irregular(a.Path)
	}
	if err := root.Remove(a.Path); err != nil {
		return nil, wrong(a.Path, err)
	}
	if err := lasts(root, path.Dir(a.Path)); err != nil {
		return nil, wrong(a.Path, err)
	}
	return done, nil
}
