//! ELF libraries, read sparingly: headers, the dynamic tables, and the few bytes of the engine's name.
//!
//! The data is a file read in parts (listing) or the bytes that are about to be loaded.

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::read::ReadRef;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};

use super::{Facts, InspectError, NAME_BYTES, NewerC};
use crate::plugin::load::c_library;

type Header = FileHeader64<Endianness>;

pub(super) fn read<'a, R: ReadRef<'a>>(data: R) -> Result<Facts, InspectError> {
    let length = data.len().map_err(|()| damaged("its length"))?;

    let ident = data
        .read_bytes_at(0, 16)
        .map_err(|()| damaged("the header"))?;
    if ident[4] != elf::ELFCLASS64.0 {
        return Err(InspectError::OtherMachine {
            found: "a 32-bit processor".to_owned(),
        });
    }
    let header = Header::parse(data).map_err(|_| damaged("the header"))?;
    let endian = header.endian().map_err(|_| damaged("the header"))?;
    check_machine(header, endian)?;
    if header.e_type(endian) != elf::ET_DYN {
        return Err(InspectError::NotALibrary {
            what: "an executable or an object file",
        });
    }

    let segments = header
        .program_headers(endian, data)
        .map_err(|_| damaged("the segment table"))?;
    for segment in segments {
        let end = segment
            .p_offset(endian)
            .checked_add(segment.p_filesz(endian));
        if segment.p_type(endian) == elf::PT_LOAD && end.is_none_or(|end| end > length) {
            return Err(InspectError::damaged(format!(
                "its contents end beyond the file's {length} bytes"
            )));
        }
    }
    let sections = header
        .sections(endian, data)
        .map_err(|_| damaged("the section table"))?;
    if sections.is_empty() {
        return Err(damaged("the section table"));
    }

    let mut facts = Facts::default();
    read_dynamic(&mut facts, &sections, endian, data)?;
    let symbols = read_symbols(&mut facts, &sections, endian, data)?;
    if let Some((address, size)) = symbols.name_at {
        // Bytes that a segment does not take from the file are zero: an empty name.
        let wanted = if size == 0 {
            NAME_BYTES
        } else {
            size.min(NAME_BYTES)
        };
        // The range itself, not the segment's data and a part of that: a segment can be most of the file.
        let bytes = segments.iter().find_map(|segment| {
            let into = address.checked_sub(segment.p_vaddr(endian))?;
            let left = segment.p_filesz(endian).checked_sub(into)?;
            let place = segment.p_offset(endian).checked_add(into)?;
            let maps = segment.p_type(endian) == elf::PT_LOAD && left > 0;
            maps.then(|| data.read_bytes_at(place, wanted.min(left)).ok())?
        });
        facts.note_name(bytes.unwrap_or_default());
    }
    facts.newer_c_library = newer_c_library(&sections, endian, data);
    facts.built_to_abort =
        !symbols.raises && (facts.has_layout || is_rust(&sections, endian, data));
    Ok(facts)
}

fn read_dynamic<'a, R: ReadRef<'a>>(
    facts: &mut Facts,
    sections: &SectionTable<'a, Header, R>,
    endian: Endianness,
    data: R,
) -> Result<(), InspectError> {
    let Some((entries, link)) = sections
        .dynamic(endian, data)
        .map_err(|_| damaged("the dynamic table"))?
    else {
        return Err(InspectError::NotALibrary {
            what: "a static program",
        });
    };
    let strings = sections
        .section(link)
        .and_then(|section| section.data(endian, data))
        .map_err(|_| damaged("the dynamic strings"))?;
    for entry in entries {
        let value = entry.d_val(endian);
        match entry.d_tag(endian) {
            elf::DT_NULL => break,
            elf::DT_NEEDED => {
                let name = text_at(strings, value).ok_or_else(|| damaged("a needed library"))?;
                facts
                    .needed
                    .push(String::from_utf8_lossy(name).into_owned());
            }
            elf::DT_FLAGS_1 if value & elf::DF_1_PIE.0 != 0 => {
                return Err(InspectError::NotALibrary {
                    what: "an executable",
                });
            }
            _ => {}
        }
    }
    Ok(())
}

#[derive(Default)]
struct Symbols {
    name_at: Option<(u64, u64)>,
    /// It throws, or contains what throws.
    raises: bool,
}

fn read_symbols<'a, R: ReadRef<'a>>(
    facts: &mut Facts,
    sections: &SectionTable<'a, Header, R>,
    endian: Endianness,
    data: R,
) -> Result<Symbols, InspectError> {
    let mut found = Symbols::default();
    let table = sections
        .iter()
        .find(|section| section.sh_type(endian) == elf::SHT_DYNSYM);
    let Some(table) = table else {
        return Ok(found);
    };
    let symbols: &[elf::Sym64<Endianness>] = table
        .data_as_array(endian, data)
        .map_err(|_| damaged("the dynamic symbols"))?;
    let strings = sections
        .section(table.link(endian))
        .and_then(|section| section.data(endian, data))
        .map_err(|_| damaged("the dynamic strings"))?;
    for symbol in symbols {
        let Some(name) = text_at(strings, u64::from(symbol.st_name(endian))) else {
            return Err(damaged("the name of a symbol"));
        };
        if name == b"_Unwind_RaiseException" {
            found.raises = true;
        }
        let defined = symbol.st_shndx(endian) != elf::SHN_UNDEF;
        if !defined || !name.starts_with(b"hermes_") {
            continue;
        }
        let is_code = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
        facts.note_export(name, !is_code);
        if name == hermes_engine_abi::NAME_SYMBOL.as_bytes() {
            found.name_at = Some((symbol.st_value(endian), symbol.st_size(endian)));
        }
    }
    Ok(found)
}

/// The newest `GLIBC_x.y` asked for, if this machine's is older.
fn newer_c_library<'a, R: ReadRef<'a>>(
    sections: &SectionTable<'a, Header, R>,
    endian: Endianness,
    data: R,
) -> Option<NewerC> {
    let have = c_library::version()?;
    let (mut needs, link) = sections.gnu_verneed(endian, data).ok().flatten()?;
    let strings = sections.section(link).ok()?.data(endian, data).ok()?;
    let mut newest: Option<(Vec<u32>, &str)> = None;
    while let Ok(Some((_, mut versions))) = needs.next() {
        while let Ok(Some(version)) = versions.next() {
            let name = text_at(strings, u64::from(version.vna_name.get(endian)))?;
            let Some(number) = std::str::from_utf8(name)
                .ok()
                .and_then(|name| name.strip_prefix("GLIBC_"))
            else {
                continue;
            };
            let Some(parts) = parse_version(number) else {
                continue;
            };
            if newest.as_ref().is_none_or(|(known, _)| parts > *known) {
                newest = Some((parts, number));
            }
        }
    }
    let (parts, number) = newest?;
    (parts > parse_version(&have)?).then(|| NewerC {
        needs: format!("GLIBC_{number}"),
        have: format!("GLIBC_{have}"),
    })
}

fn parse_version(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

/// Compilers leave their names in a section of comments.
fn is_rust<'a, R: ReadRef<'a>>(
    sections: &SectionTable<'a, Header, R>,
    endian: Endianness,
    data: R,
) -> bool {
    sections
        .section_by_name(endian, b".comment")
        .and_then(|(_, section)| section.data(endian, data).ok())
        .is_some_and(|comment| memchr::memmem::find(comment, b"rustc version").is_some())
}

fn check_machine(header: &Header, endian: Endianness) -> Result<(), InspectError> {
    let machine = header.e_machine(endian);
    let ours = match std::env::consts::ARCH {
        "x86_64" => elf::EM_X86_64,
        "aarch64" => elf::EM_AARCH64,
        "riscv64" => elf::EM_RISCV,
        "powerpc64" => elf::EM_PPC64,
        "s390x" => elf::EM_S390,
        "loongarch64" => elf::EM_LOONGARCH,
        // Not one that we can name: the system's own loader decides.
        _ => return Ok(()),
    };
    let same_order = endian == Endianness::default();
    if machine == ours && same_order {
        return Ok(());
    }
    let found = match machine {
        elf::EM_X86_64 => "x86_64".to_owned(),
        elf::EM_AARCH64 => "aarch64".to_owned(),
        elf::EM_RISCV => "riscv64".to_owned(),
        elf::EM_PPC64 => "powerpc64".to_owned(),
        elf::EM_S390 => "s390x".to_owned(),
        elf::EM_LOONGARCH => "loongarch64".to_owned(),
        other => format!("processor number {}", other.0),
    };
    let order = if same_order {
        ""
    } else {
        " (other byte order)"
    };
    Err(InspectError::OtherMachine {
        found: format!("{found}{order}"),
    })
}

/// A text that ends at a NUL.
fn text_at(strings: &[u8], at: u64) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(at).ok()?..)?;
    rest.get(..memchr::memchr(0, rest)?)
}

fn damaged(part: &str) -> InspectError {
    InspectError::damaged(format!("{part} cannot be read"))
}
