(* SPDX-License-Identifier: MIT *)
(*
   Leaves functions by exceptions, in the ways that OCaml programs do: raised by OCaml code and by
   C, with and without a backtrace, through closures, through C and out of callbacks, from deep
   recursion, again by handlers. Each way out is followed by a call of back. Arguments: the number
   of rounds; and of the one part that is to run, all without. Or "version": the compiler's.
*)

exception Trouble of int
exception Other

external through_c : (int -> int) -> int -> int = "raises_through"
external through_c_exn : (int -> int) -> int -> int = "raises_through_exn"
external fail_in_c : int -> int = "raises_fail"
external not_found_in_c : int -> int = "raises_not_found"
external signal_oneself : unit -> unit = "raises_signal" [@@noalloc]
external at_bottom : (int -> int) -> int -> int = "raises_at_bottom"

let total = ref 0
let back n = total := (!total * 3 + n) land 0xffff [@@inline never]
let id x = Sys.opaque_identity x

(* The outermost activation takes it; those between have handlers for something else. *)
let rec deep n =
  if n = 0 then raise (Trouble (id 7))
  else 1 + (try deep (n - 1) with Not_found -> back 1; 0)
[@@inline never]

let deep_part n = try back (deep n) with Trouble k -> back k

(* Each activation has the handler that is meant for another one: the same code, other depths. *)
let rec chosen n taker =
  if n = 0 then raise_notrace (Trouble taker)
  else
    try 1 + chosen (n - 1) taker
    with Trouble t when t = n -> back t; n
[@@inline never]

let chosen_part n = for taker = 1 to n do back (chosen n taker) done

(* Raised and taken in one function; and raised in it for its caller's activation. *)
let rec own n =
  let here =
    try if n land 1 = 0 then raise_notrace Other else raise Exit with
    | Other -> back 2; 2
    | Exit when n land 3 = 1 -> back 3; 3
  in
  if n = 0 then here else try here + own (n - 1) with Exit -> back 4; 4
[@@inline never]

let own_part n = for k = 0 to n do try back (own k) with Exit -> back 5 done

let rec again n =
  if n = 0 then raise Other
  else
    try back n; again (n - 1); back (-n) with
    | Other when n land 1 = 0 -> raise (Trouble n)
    | Trouble _ as e when n land 1 = 1 -> raise e
    | (Other | Trouble _) as e when n land 2 = 0 -> raise_notrace e
[@@inline never]

let again_part n = try again n with Trouble k -> back k | Other -> back 0

let iter_part n =
  let l = List.init n (fun i -> i) in
  (try List.iter (fun x -> if x = n / 2 then raise Exit else back x) l with Exit -> back 6);
  (try List.iter (fun x -> if x = n / 3 then raise_notrace Exit else back x) l
   with Exit -> back 7);
  back (List.fold_left (fun a x -> try if x land 1 = 0 then raise Other else a with Other -> a + x) 0 l)

let table : (int, int) Hashtbl.t = Hashtbl.create 16

let find_part n =
  for i = 1 to n do
    (match Hashtbl.find table i with
     | v -> back v
     | exception Not_found -> back (-1));
    (match List.assoc i [(1, 2); (3, 4)] with exception Not_found -> back 8 | v -> back v);
    (try back (int_of_string (if i land 1 = 0 then "x" else "12")) with Failure _ -> back 9)
  done

let inner n = if n > 2 then raise (Trouble n) else back n; n [@@inline never]

(* Out of an OCaml function that C called, which C passes on, or gets as a value. *)
let c_part n =
  for i = 1 to n do
    (try back (through_c inner (i land 7)) with Trouble k -> back k);
    back (through_c_exn inner (i land 7));
    (try back (fail_in_c i) with Failure _ -> back 10 | Invalid_argument _ -> back 11);
    (try back (not_found_in_c i) with Not_found -> back 12);
    (try back (through_c (fun k -> try through_c inner k with Other -> 0) (i land 7))
     with Trouble k -> back k);
    (try back (through_c fail_in_c i) with Failure _ | Invalid_argument _ -> back 13)
  done

(* C and OCaml by turns, the handlers far out. *)
let rec turns n =
  if n = 0 then raise (Trouble 5) else 1 + at_bottom turns (n - 1) [@@inline never]

let turns_part n =
  (try back (turns n) with Trouble k -> back k);
  try back (1 + try turns n with Not_found -> 3) with Trouble k -> back k

let protect_part n =
  for i = 1 to n do
    try
      back
        (Fun.protect
           ~finally:(fun () -> back 14)
           (fun () -> if i land 1 = 0 then raise (Trouble i) else i))
    with Trouble k -> back k
  done

let bounds = Array.make 4 1
let divide a b = a / b [@@inline never]
let at a i = a.(i) + a.(i + 1) [@@inline never]

(* Where the compiler's own checks raise. *)
let checks_part n =
  for i = 0 to n do
    (try back (at bounds i) with Invalid_argument _ -> back 15);
    (try back (divide i (i land 1)) with Division_by_zero -> back 16);
    (try back (Char.code "abc".[i]) with Invalid_argument _ -> back 17)
  done

(* A switch whose cases have handlers of their own. *)
let switched f x =
  match x land 7 with
  | 0 -> (try f 1 with Exit -> back 20; 1)
  | 1 -> f 2
  | 2 -> (try f 3 + (try f 4 with Other -> back 21; 2) with Exit -> back 22; 3)
  | 3 -> raise_notrace Other
  | 4 -> (try f 5; with Exit -> raise Other)
  | 5 -> (match f 6 with exception Exit -> back 23; 4 | v when v > 3 -> v | _ -> raise Exit)
  | 6 -> (try raise Exit with Exit -> f 7)
  | _ -> f 8
[@@inline never]

let thrower x = if x land 1 = 1 then raise Exit else if x land 2 = 2 then raise_notrace Other else x
[@@inline never]

let switch_part n =
  for i = 0 to n do
    try back (switched thrower i) with Exit -> back 24 | Other -> back 25
  done

let keep : int ref list ref = ref []

(* Enough of them that the collector, which is called where memory is wanted, runs in between. *)
let alloc_part n =
  let kept = ref [] in
  for i = 1 to n do
    try
      kept := Bytes.make 512 'x' :: !kept;
      if i land 15 = 0 then kept := [];
      if i land 3 = 0 then raise (Trouble (Bytes.length (List.hd !kept)))
    with Trouble k -> back k | Failure _ -> back 18
  done

(* Where a signal is handled, which is at the next place to poll: the handler raises. *)
let rec polls n = if n > 0 then (back n; polls (n - 1)) [@@inline never]

let signal_part n =
  for i = 1 to n do
    try
      signal_oneself ();
      polls i;
      keep := [ref i];
      polls 100;
      keep := [ref i]
    with Exit -> back 26
  done

let parts =
  [| (fun () -> deep_part 60); (fun () -> chosen_part 9); (fun () -> own_part 20);
     (fun () -> again_part 30); (fun () -> iter_part 16); (fun () -> find_part 6);
     (fun () -> c_part 8); (fun () -> turns_part 6); (fun () -> protect_part 10);
     (fun () -> checks_part 10); (fun () -> switch_part 16); (fun () -> alloc_part 40);
     (fun () -> signal_part 6) |]

let run () =
  let rounds = if Array.length Sys.argv > 1 then int_of_string Sys.argv.(1) else 10 in
  Sys.set_signal Sys.sigusr1 (Sys.Signal_handle (fun _ -> back 27; raise Exit));
  for i = 1 to 9 do if i land 1 = 0 then Hashtbl.replace table i i done;
  for _ = 1 to rounds do
    if Array.length Sys.argv > 2 then parts.(int_of_string Sys.argv.(2)) ()
    else Array.iter (fun part -> part ()) parts
  done;
  print_int !total

let () = if Sys.argv = [| Sys.argv.(0); "version" |] then print_string Sys.ocaml_version else run ()
