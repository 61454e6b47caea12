// `import PostcardForm` also imports the types of header fields that its declarations use. With MemberImportVisibility,
// an app would otherwise have to import their module to set a single field.
@_exported public import HTTPTypes
