#pragma once

/// How a program that ran to its end did.
struct child_process_result {
    /// Its exit status, or -1 where it did not start or was killed.
    int status;
    /// From before its start to after its end.
    double seconds;
    /// The most memory that it held. The kernel counts from the start on what the parent held by then, so this says
    /// too much where that was more.
    long peak_bytes;
};

/// Runs a program, searched in PATH, with standard output to /dev/null, and waits for its end.
///
/// - Parameter arguments: Ends with NULL; the first is the program.
struct child_process_result child_process_run(char *const arguments[]);
