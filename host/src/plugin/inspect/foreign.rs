//! Files that are no ELF libraries: telling what they are, and reading those of the two other systems.

use object::read::{Object, ObjectSection, ObjectSymbol, ReadRef};
use object::{ObjectKind, SymbolKind};

use super::{Facts, InspectError, NAME_BYTES};

/// Refuses what is not in this system's format, by its first bytes.
pub(super) fn check_format(head: &[u8]) -> Result<(), InspectError> {
    let format = Format::of(&head[..head.len().min(64)]);
    match format {
        Format::Elf if cfg!(any(target_os = "macos", windows)) => Err(InspectError::OtherSystem {
            found: "a library for Linux or a BSD",
        }),
        Format::MachO if !cfg!(target_os = "macos") => Err(InspectError::OtherSystem {
            found: "a library for macOS",
        }),
        Format::Pe if !cfg!(windows) => Err(InspectError::OtherSystem {
            found: "a library for Windows",
        }),
        Format::Elf | Format::MachO | Format::Pe => Ok(()),
        Format::Other(what) => Err(InspectError::NotALibrary { what }),
    }
}

enum Format {
    Elf,
    MachO,
    Pe,
    Other(&'static str),
}

impl Format {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x7f, b'E', b'L', b'F', ..] => Self::Elf,
            // Thin in both byte orders, and the fat container.
            [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..]
            | [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..]
            | [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 0..=20, ..] => Self::MachO,
            [b'M', b'Z', ..] => Self::Pe,
            [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => Self::Other("a static library"),
            [0, b'a', b's', b'm', ..] => Self::Other("a WebAssembly module"),
            [b'#', b'!', ..] => Self::Other("a script"),
            _ if head
                .iter()
                .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..)) =>
            {
                Self::Other("a text file")
            }
            _ => Self::Other("a file of another kind"),
        }
    }
}

/// Reads a library through the parts that all formats share.
pub(super) fn read<'a, R: ReadRef<'a>>(data: R) -> Result<Facts, InspectError> {
    let object =
        object::File::parse(data).map_err(|error| InspectError::damaged(error.to_string()))?;
    if object.architecture() != this_architecture() {
        return Err(InspectError::OtherMachine {
            found: format!("{:?}", object.architecture()).to_lowercase(),
        });
    }
    if object.kind() != ObjectKind::Dynamic {
        return Err(InspectError::NotALibrary {
            what: "an executable or an object file",
        });
    }

    let mut facts = Facts::default();
    let mut name_at = None;
    let exports = object
        .exports()
        .map_err(|error| InspectError::damaged(error.to_string()))?;
    for export in exports {
        let export = export.map_err(|error| InspectError::damaged(error.to_string()))?;
        let object::ExportTarget::Address { address } = export.target() else {
            continue;
        };
        let Some(name) = export.name().into_name() else {
            continue;
        };
        let plain = name
            .strip_prefix(b"_")
            .filter(|_| cfg!(target_os = "macos"))
            .unwrap_or(name);
        if plain == hermes_engine_abi::NAME_SYMBOL.as_bytes() {
            name_at = Some(address);
        }
        facts.note_export(plain, is_data(&object, address));
    }
    if let Some(address) = name_at {
        let bytes = object.sections().find_map(|section| {
            let end = section.address().checked_add(section.size())?;
            let length = end.checked_sub(address)?.min(NAME_BYTES);
            section.data_range(address, length).ok().flatten()
        });
        facts.note_name(bytes.unwrap_or_default());
    }
    for import in object.imports().into_iter().flatten().flatten() {
        let library = String::from_utf8_lossy(import.library()).into_owned();
        if !library.is_empty() && !facts.needed.contains(&library) {
            facts.needed.push(library);
        }
    }
    Ok(facts)
}

fn is_data<'a, R: ReadRef<'a>>(object: &object::File<'a, R>, address: u64) -> bool {
    let symbol = object
        .dynamic_symbols()
        .chain(object.symbols())
        .find(|symbol| symbol.address() == address && symbol.is_definition());
    if let Some(symbol) = symbol {
        return symbol.kind() == SymbolKind::Data;
    }
    // No symbol says more than the export: what lies in a section of code is a function.
    !object.sections().any(|section| {
        section.kind() == object::SectionKind::Text
            && (section.address()..section.address() + section.size()).contains(&address)
    })
}

fn this_architecture() -> object::Architecture {
    match std::env::consts::ARCH {
        "x86_64" => object::Architecture::X86_64,
        "aarch64" => object::Architecture::Aarch64,
        "riscv64" => object::Architecture::Riscv64,
        "powerpc64" => object::Architecture::PowerPc64,
        "s390x" => object::Architecture::S390x,
        "loongarch64" => object::Architecture::LoongArch64,
        _ => object::Architecture::Unknown,
    }
}
