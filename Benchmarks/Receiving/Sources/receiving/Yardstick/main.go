// The yardstick: a receiver of forms on Go's net/http and mime/multipart, with the same duties as Postcard's. It
// streams each file to the disk, hashes it meanwhile, and responds with 201 only when the content, the record and the
// names of both are durable. What breaks off leaves nothing behind.
package main

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	maximumBodyBytes  = 2 << 30
	maximumFieldBytes = 1 << 20
	maximumParts      = 1000
	blockBytes        = 256 << 10
)

type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type file struct {
	Name        string `json:"name"`
	Filename    string `json:"filename"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	URL         string `json:"url"`
}

type record struct {
	ID       string  `json:"id"`
	Received string  `json:"received"`
	Fields   []field `json:"fields"`
	Files    []file  `json:"files"`
}

type receiver struct {
	directory string
	incoming  string
	readers   sync.Pool
	writers   sync.Pool
}

func main() {
	directory := flag.String("directory", "received", "where the forms are kept")
	flag.Parse()
	incoming := filepath.Join(*directory, ".incoming")
	if err := os.MkdirAll(incoming, 0o700); err != nil {
		log.Fatal(err)
	}
	r := &receiver{directory: *directory, incoming: incoming}
	r.readers.New = func() any { return bufio.NewReaderSize(nil, blockBytes) }
	r.writers.New = func() any { return bufio.NewWriterSize(nil, blockBytes) }
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	routes := http.NewServeMux()
	routes.HandleFunc("/uploads", r.serve)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second}
	log.Fatal(server.Serve(listener))
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		http.Error(w, "POST a form", http.StatusMethodNotAllowed)
		return
	}
	reader := r.readers.Get().(*bufio.Reader)
	defer r.readers.Put(reader)
	body := http.MaxBytesReader(w, request.Body, maximumBodyBytes)
	reader.Reset(body)
	request.Body = struct {
		io.Reader
		io.Closer
	}{reader, body}
	received, err := r.receive(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/uploads/"+received.ID)
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(received)
}

func (r *receiver) receive(request *http.Request) (_ *record, err error) {
	parts, err := request.MultipartReader()
	if err != nil {
		return nil, err
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(r.incoming, id)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(folder)
		}
	}()
	received := &record{ID: id, Fields: []field{}, Files: []file{}}
	for count := 0; ; count++ {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if count == maximumParts {
			return nil, errors.New("too many parts")
		}
		if part.FileName() == "" {
			value, err := io.ReadAll(io.LimitReader(part, maximumFieldBytes+1))
			if err != nil {
				return nil, err
			}
			if len(value) > maximumFieldBytes {
				return nil, errors.New("a field is too long")
			}
			received.Fields = append(received.Fields, field{part.FormName(), string(value)})
			continue
		}
		index := strconv.Itoa(len(received.Files))
		hash := sha256.New()
		size, err := r.store(part, filepath.Join(folder, index), hash)
		if err != nil {
			return nil, err
		}
		received.Files = append(received.Files, file{
			Name: part.FormName(), Filename: part.FileName(), ContentType: part.Header.Get("Content-Type"),
			Size: size, SHA256: hex.EncodeToString(hash.Sum(nil)), URL: "/uploads/" + id + "/files/" + index,
		})
	}
	received.Received = time.Now().UTC().Format(time.RFC3339)
	text, err := json.Marshal(received)
	if err != nil {
		return nil, err
	}
	if err := writeDurably(filepath.Join(folder, "record.json"), text); err != nil {
		return nil, err
	}
	if err := synchronizeDirectory(folder); err != nil {
		return nil, err
	}
	if err := os.Rename(folder, filepath.Join(r.directory, id)); err != nil {
		return nil, err
	}
	return received, synchronizeDirectory(r.directory)
}

func (r *receiver) store(content io.Reader, path string, hash hash.Hash) (int64, error) {
	output, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer output.Close()
	// A part is read in pieces of a few kilobytes; the hash and the disk get them in larger ones.
	writer := r.writers.Get().(*bufio.Writer)
	defer r.writers.Put(writer)
	writer.Reset(io.MultiWriter(output, hash))
	size, err := io.Copy(writer, content)
	if err != nil {
		return 0, err
	}
	if err := writer.Flush(); err != nil {
		return 0, err
	}
	return size, output.Sync()
}

func writeDurably(path string, text []byte) error {
	output, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	if _, err := output.Write(text); err != nil {
		return err
	}
	return output.Sync()
}

func synchronizeDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Sync()
}

func newID() (string, error) {
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	return fmt.Sprintf("%012x%s", time.Now().UnixMilli(), hex.EncodeToString(random)), nil
}
