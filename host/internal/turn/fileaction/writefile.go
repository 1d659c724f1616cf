package fileaction

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

// writeFile replaces or creates a file, and creates its parent directories.
func writeFile(d *Directory, ctx context.Context, root *os.Root, c Call, a args) (any, *abi.Error) {
	content, fault := d.content(a)
	if fault != nil {
		return nil, fault
	}
	was, fault := existingFile(root, a.Path)
	if fault != nil {
		return nil, fault
	}
	mode, more, names := os.FileMode(fileMode), int64(len(content)), depth(a.Path)
	if was != nil {
		mode, more, names = was.Mode().Perm(), more-was.Size(), 0
	}
	if fault := d.checkQuota(ctx, root, a.Path, more, names); fault != nil {
		return nil, fault
	}
	if err := root.MkdirAll(path.Dir(a.Path), dirMode); err != nil {
		return nil, fsError(a.Path, err)
	}
	part := path.Join(path.Dir(a.Path), partName(c.Key))
	if err := writeViaPart(root, part, a.Path, content, mode); err != nil {
		return nil, fsError(a.Path, errors.Join(err, remove(root, part)))
	}
	return "successfully wrote to " + a.Path, nil
}

// content decodes the content to write.
func (d *Directory) content(a args) ([]byte, *abi.Error) {
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
	if int64(len(content)) > d.opt.MaxFile {
		return nil, fail(abi.CodeLimit, "max_file", "the content has %d bytes, at most %d; %s max_file allows more", len(content), d.opt.MaxFile, d.opt.Table)
	}
	return content, nil
}

// existingFile returns the file to be replaced, or nil.
func existingFile(root *os.Root, p string) (os.FileInfo, *abi.Error) {
	info, err := root.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fsError(p, err)
	case info.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is a directory", p)
	case !info.Mode().IsRegular():
		return nil, fail(abi.CodeDenied, "path", "%.100q is no regular file, and is not replaced by one", p)
	}
	return info, nil
}

// partName is the name of the unfinished file. Each attempt of one call has the same.
func partName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return partPrefix + hex.EncodeToString(sum[:8])
}

// writeViaPart writes an unfinished file and renames it. On failure the unfinished file
// stays.
func writeViaPart(root *os.Root, part, p string, content []byte, mode os.FileMode) error {
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
	return syncDirectory(root, path.Dir(p))
}

// remove removes a file, which need not exist.
func remove(root *os.Root, p string) error {
	if err := root.Remove(p); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// deleteFile removes a file. A retry that finds no file succeeds.
func deleteFile(_ *Directory, _ context.Context, root *os.Root, c Call, a args) (any, *abi.Error) {
	done := "successfully deleted " + a.Path
	info, err := root.Lstat(a.Path)
	switch {
	case c.Retry && errors.Is(err, fs.ErrNotExist):
		return done, nil
	case err != nil:
		return nil, fsError(a.Path, err)
	case info.IsDir():
		return nil, fail(abi.CodeInvalid, "path", "%.100q is a directory; only files are deleted", a.Path)
	case !info.Mode().IsRegular():
		return nil, irregular(a.Path)
	}
	if err := root.Remove(a.Path); err != nil {
		return nil, fsError(a.Path, err)
	}
	if err := syncDirectory(root, path.Dir(a.Path)); err != nil {
		return nil, fsError(a.Path, err)
	}
	return done, nil
}
