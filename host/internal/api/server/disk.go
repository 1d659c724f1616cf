package server

import (
	"skep/host/internal/diskspace"
	"skep/host/internal/telemetry"
)

// freeSpace finds what the file system of a directory still takes.
type freeSpace func(dir string) (diskspace.Free, error)

// diskWarnings has a warning where the disk of a directory is nearly full, or cannot be asked.
func diskWarnings(dir string, of freeSpace) []string {
	free, err := of(dir)
	if err != nil {
		return []string{"the disk of " + dir + " cannot be asked what it takes: " + err.Error()}
	}
	if warning := diskspace.Warning(dir, free); warning != "" {
		return []string{warning}
	}
	return nil
}

// diskMetrics has no family where the disk cannot be asked.
func diskMetrics(dir string, of freeSpace) []telemetry.Family {
	free, err := of(dir)
	if err != nil {
		return nil
	}
	return []telemetry.Family{telemetry.Gauge("skep_disk_free_bytes", "What the disk of the data directory still takes.", float64(free.Bytes))}
}
