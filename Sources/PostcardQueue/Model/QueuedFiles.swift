#if Queue
/// What a queue does with the files of a form.
public enum QueuedFiles: Sendable, Hashable {
    /// They stay where they are, and must be there, unchanged, when their turn comes. An upload whose file is gone
    /// or changed fails and says so.
    case referenced
    /// They are copied into the queue's directory, as clones where the file system knows them, and removed when the
    /// upload is done or cleared.
    case copied
}
#endif
