// What the figures compare Postcard with, and what all of them send to, on Go's net/http and mime/multipart:
// `figures sink` reads bodies and drops them, `figures send URL FILE` sends a form and streams the file, and `figures run
// COMMAND…` runs another program and prints its seconds and its most memory in bytes. Memory is counted here because a
// process that a larger one starts has the other's peak.
package main

import (
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

func sink() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s/\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		count, err := io.Copy(io.Discard, request.Body)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		writer.WriteHeader(http.StatusCreated)
		fmt.Fprintf(writer, "{\"bytes\":%d}", count)
	})))
}

func write(form *multipart.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := form.WriteField("name", "초코"); err != nil {
		return err
	}
	part, err := form.CreateFormFile("file", filepath.Base(path))
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, file); err != nil {
		return err
	}
	return form.Close()
}

func send(url, path string) {
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() { writer.CloseWithError(write(form, path)) }()
	response, err := http.Post(url, form.FormDataContentType(), reader)
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusCreated {
		log.Fatal(response.Status)
	}
}

func run(arguments []string) {
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	start := time.Now()
	if err := command.Start(); err != nil {
		log.Fatal(err)
	}
	go func() {
		for end := range ends {
			command.Process.Signal(end)
		}
	}()
	command.Wait()
	peak := command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS != "darwin" {
		peak *= 1024
	}
	fmt.Printf("\n%f %d\n", time.Since(start).Seconds(), peak)
	if code := command.ProcessState.ExitCode(); code > 0 {
		os.Exit(code)
	}
}

func main() {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "run":
		run(os.Args[2:])
	case len(os.Args) == 2 && os.Args[1] == "sink":
		sink()
	case len(os.Args) == 4 && os.Args[1] == "send":
		send(os.Args[2], os.Args[3])
	default:
		log.Fatal("figures sink | figures send URL FILE | figures run COMMAND...")
	}
}
