package diskspace

import "fmt"

// Least free space and files below which a host is warned. A commit needs little, but a
// backup or the rewriting of a tenant's data as much as the store has.
const (
	LeastBytes = 512 << 20
	LeastFiles = 2000
)

// Free is what a file system still takes for this user. Files is 0 and Counted false where
// it has no limit on files.
type Free struct {
	Bytes, Files uint64
	Counted      bool
}

// FewBytes reports whether there is too little space.
func (f Free) FewBytes() bool { return f.Bytes < LeastBytes }

// FewFiles reports whether too few files can be made.
func (f Free) FewFiles() bool { return f.Counted && f.Files < LeastFiles }

// Warning is what is too little in a directory, empty for nothing.
func Warning(dir string, f Free) string {
	switch {
	case f.FewBytes():
		return fmt.Sprintf("the disk of %s has %d MiB left, and less than %d are few", dir, f.Bytes>>20, LeastBytes>>20)
	case f.FewFiles():
		return fmt.Sprintf("the disk of %s takes %d more files, and less than %d are few", dir, f.Files, LeastFiles)
	}
	return ""
}
