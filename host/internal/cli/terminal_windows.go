package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// terminalSize returns the columns and lines of a console, and has it obey escape sequences; ok
// is false for anything else, also for a console that does not know them.
func terminalSize(f *os.File) (width, height int, ok bool) {
	console := windows.Handle(f.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return 0, 0, false
	}
	var size windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(console, &size); err != nil {
		return 0, 0, true // the keyboard
	}
	err := windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	return int(size.Window.Right-size.Window.Left) + 1, int(size.Window.Bottom-size.Window.Top) + 1, err == nil
}
