package diskspace

import (
	"os"

	"golang.org/x/sys/windows"
)

// Of returns what the file system of a directory still takes.
func Of(dir string) (Free, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Free{}, err
	}
	var f Free
	if err := windows.GetDiskFreeSpaceEx(name, &f.Bytes, nil, nil); err != nil {
		return Free{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: dir, Err: err}
	}
	return f, nil
}
