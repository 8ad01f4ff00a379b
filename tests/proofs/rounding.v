(* rounding.v - how far the plain primitives may be from the theorems, in any arithmetic whose
   operations are off by a factor 1 + d, |d| ≤ u, each: IEEE 754 without underflow.

   u is 2⁻²⁴ where sums are done in float, and 2⁻⁵³ where they are done in double. *)

Require Import base batch_norm merge.

Section Rounding.
Variable u : R.
Hypothesis u_pos : 0 <= u.

(* a is b, rounded once. *)
Definition rounded (a b : R) : Prop := exists d, Rabs d <= u /\ a = b * (1 + d).
(* What k roundings may do to a product: (1 + u)ᵏ − 1 *)
Definition off (k : nat) : R := (1 + u) ^ k - 1.

(* off k is k·u but for terms of u²: the γ of the textbooks. *)
Theorem SUM_7_gamma (k : nat) : k * u < 1 -> off k <= k * u / (1 - k * u).
Proof.
  intros H. assert (P : forall n : nat, (1 + u) ^ n * (1 - n * u) <= 1).
  { induction n; [simpl; lra |]. rewrite S_INR, <- tech_pow_Rmult.
    pose proof (pow_le (1 + u) n ltac:(lra)) as Q. pose proof (pos_INR n).
    assert (0 <= (1 + u) ^ n * ((n + 1) * u * u)) by (repeat apply Rmult_le_pos; lra). nra. }
  apply -> Rle_div_r; [| lra]. specialize (P k). unfold off. lra.
Qed.

Lemma off_S k : off (S k) = (1 + u) * off k + u.
Proof. unfold off. simpl. ring. Qed.
Lemma off_plus j k : off (j + k) = off j * (1 + off k) + off k.
Proof. unfold off. rewrite pow_add. ring. Qed.
Lemma off_nonneg k : 0 <= off k.
Proof. induction k; [unfold off; simpl; lra | rewrite off_S; nra]. Qed.

(* One more rounding of what is off already *)
Lemma round_again k a b c : rounded c a -> Rabs (a - b) <= off k * Rabs b ->
  Rabs (c - b) <= off (S k) * Rabs b.
Proof.
  intros (d & D & E) H. rewrite E, off_S. pose proof (Rabs_pos b). pose proof (off_nonneg k).
  replace (a * (1 + d) - b) with ((1 + d) * (a - b) + d * b) by ring.
  eapply Rle_trans; [apply Rabs_triang |]. rewrite !Rabs_mult.
  assert (Rabs (1 + d) <= 1 + u).
  { eapply Rle_trans; [apply Rabs_triang |]. rewrite Rabs_R1. lra. }
  pose proof (Rabs_pos (a - b)). pose proof (Rabs_pos (1 + d)).
  assert (Rabs (1 + d) * Rabs (a - b) <= (1 + u) * (off k * Rabs b))
    by (apply Rmult_le_compat; assumption).
  assert (Rabs d * Rabs b <= u * Rabs b) by (apply Rmult_le_compat_r; assumption). nra.
Qed.

(* A running sum s of n terms: each addition is rounded. *)
Section Sums.
Variables (a s : nat -> R).
Hypothesis start : s 0%nat = 0.
Hypothesis adds : forall i, rounded (s (S i)) (s i + a i).

Theorem SUM_7_sum_rounded n : Rabs (s n - ∑ i < n, a i) <= off n * ∑ i < n, Rabs (a i).
Proof.
  induction n; [rewrite start; simpl; unfold Rminus; rewrite Ropp_0, Rplus_0_r, Rabs_R0; lra |].
  cbn [Sum]. destruct (adds n) as (d & D & E). rewrite E, off_S.
  set (T := ∑ i < n, a i) in *. set (A := ∑ i < n, Rabs (a i)) in *.
  assert (HA : Rabs T <= A) by apply Sum_abs. pose proof (off_nonneg n).
  replace ((s n + a n) * (1 + d) - (T + a n)) with ((1 + d) * (s n - T) + d * (T + a n)) by ring.
  eapply Rle_trans; [apply Rabs_triang |]. rewrite !Rabs_mult.
  assert (Rabs (1 + d) <= 1 + u).
  { eapply Rle_trans; [apply Rabs_triang |]. rewrite Rabs_R1. lra. }
  pose proof (Rabs_triang T (a n)). pose proof (Rabs_pos (a n)). pose proof (Rabs_pos T).
  assert (Rabs (1 + d) * Rabs (s n - T) <= (1 + u) * (off n * A))
    by (apply Rmult_le_compat; auto using Rabs_pos).
  assert (Rabs d * Rabs (T + a n) <= u * (A + Rabs (a n)))
    by (apply Rmult_le_compat; auto using Rabs_pos; lra).
  assert (0 <= (1 + u) * off n * Rabs (a n)) by (repeat apply Rmult_le_pos; lra). nra.
Qed.

(* If the terms are themselves off by k roundings of c, the sum is by k more. *)
Theorem SUM_7_terms_rounded n k c : (forall i, Rabs (a i - c i) <= off k * Rabs (c i)) ->
  Rabs (s n - ∑ i < n, c i) <= off (n + k) * ∑ i < n, Rabs (c i).
Proof.
  intros H. pose proof (SUM_7_sum_rounded n) as A. pose proof (off_nonneg n).
  set (C := ∑ i < n, Rabs (c i)).
  assert (B : ∑ i < n, Rabs (a i) <= (1 + off k) * C).
  { unfold C. rewrite <- Sum_scal. apply Sum_le; intros i _. specialize (H i).
    pose proof (Rabs_triang_inv (a i) (c i)). lra. }
  assert (D : Rabs (∑ i < n, a i - ∑ i < n, c i) <= off k * C).
  { unfold C. rewrite <- Sum_minus, <- Sum_scal.
    eapply Rle_trans; [apply Sum_abs |]. apply Sum_le; intros i _. apply H. }
  rewrite off_plus. replace (s n - ∑ i < n, c i)
    with ((s n - ∑ i < n, a i) + (∑ i < n, a i - ∑ i < n, c i)) by ring.
  eapply Rle_trans; [apply Rabs_triang |].
  pose proof (Rmult_le_compat_l _ _ _ (off_nonneg n) B). nra.
Qed.
End Sums.

(* SUM.7, the mean: each xᵢ − x₁ is rounded, each addition, and the division by M. *)
Theorem SUM_7_mean_rounded M x d s offset : (0 < M)%nat ->
  (forall i, rounded (d i) (x i - x 0%nat)) ->
  s 0%nat = 0 -> (forall i, rounded (s (S i)) (s i + d i)) -> rounded offset (s M / M) ->
  Rabs (x 0%nat + offset - mean M x) <= off (M + 2) * mean M (fun i => Rabs (x i - x 0%nat)).
Proof.
  intros P Hd S0 Hs Ho. set (c := fun i => x i - x 0%nat).
  assert (K : forall i, Rabs (d i - c i) <= off 1 * Rabs (c i)).
  { intros i. apply (round_again 0 (c i)); [apply Hd |].
    unfold Rminus. rewrite Rplus_opp_r, Rabs_R0. unfold off; simpl. lra. }
  pose proof (SUM_7_terms_rounded d s S0 Hs M 1 c K) as T.
  destruct (SUM_7 M x P) as [E _]. pose proof (count_pos M P) as M0.
  destruct Ho as (e & He & Ee). set (A := ∑ i < M, Rabs (c i)) in *.
  assert (HA : Rabs (∑ i < M, c i) <= A) by apply Sum_abs.
  replace (x 0%nat + offset - mean M x)
    with (((1 + e) * (s M - ∑ i < M, c i) + e * ∑ i < M, c i) / M)
    by (rewrite E, Ee; unfold c; field; lra).
  rewrite (mean_is M (fun i => Rabs (x i - x 0%nat))).
  change (Sum M (fun i => Rabs (x i - x 0%nat))) with A.
  unfold Rdiv.
  rewrite Rabs_mult, (Rabs_right (/ M)) by (apply Rle_ge, Rlt_le, Rinv_0_lt_compat, M0).
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, M0 |].
  eapply Rle_trans; [apply Rabs_triang |]. rewrite !Rabs_mult.
  replace (M + 2)%nat with (S (M + 1)) by lia. rewrite off_S.
  assert (Rabs (1 + e) <= 1 + u).
  { eapply Rle_trans; [apply Rabs_triang |]. rewrite Rabs_R1. lra. }
  assert (Rabs (1 + e) * Rabs (s M - ∑ i < M, c i) <= (1 + u) * (off (M + 1) * A))
    by (apply Rmult_le_compat; auto using Rabs_pos).
  assert (Rabs e * Rabs (∑ i < M, c i) <= u * A) by (apply Rmult_le_compat; auto using Rabs_pos).
  lra.
Qed.

(* SUM.7, the variance, about any centre m such as the mean just found: each xᵢ − m is rounded,
   its square, each addition, and the division by M. *)
Theorem SUM_7_variance_rounded M x m d q s V : (0 < M)%nat ->
  (forall i, rounded (d i) (x i - m)) -> (forall i, rounded (q i) (d i * d i)) ->
  s 0%nat = 0 -> (forall i, rounded (s (S i)) (s i + q i)) -> rounded V (s M / M) ->
  Rabs (V - (var M x + (mean M x - m) ^ 2)) <= off (M + 4) * (var M x + (mean M x - m) ^ 2).
Proof.
  intros P Hd Hq S0 Hs HV. rewrite <- (BN_2 M x P m). set (c := fun i => (x i - m) ^ 2).
  assert (Pc : forall i, Rabs (c i) = c i) by (intros; apply Rabs_right, Rle_ge, pow2_ge_0).
  assert (K : forall i, Rabs (q i - c i) <= off 3 * Rabs (c i)).
  { intros i. destruct (Hd i) as (e & He & Ee). apply (round_again 2 (d i * d i)); [apply Hq |].
    rewrite Ee. replace ((x i - m) * (1 + e) * ((x i - m) * (1 + e)) - c i)
      with ((2 * e + e * e) * c i) by (unfold c; ring).
    rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos |].
    eapply Rle_trans; [apply Rabs_triang |]. rewrite !Rabs_mult, (Rabs_right 2) by lra.
    pose proof (Rabs_pos e). unfold off. simpl. nra. }
  pose proof (SUM_7_terms_rounded q s S0 Hs M 3 c K) as T.
  rewrite (Sum_ext M (fun i => Rabs (c i)) c Pc) in T. pose proof (count_pos M P) as M0.
  destruct HV as (e & He & Ee). change (∑ i < M, c i) with (Sum M c) in T. set (A := Sum M c) in *.
  assert (HA : 0 <= A) by (apply Sum_nonneg; intros; apply pow2_ge_0).
  change (Sum M (fun i => (x i - m) ^ 2)) with A.
  replace (V - A / M) with (((1 + e) * (s M - A) + e * A) / M) by (rewrite Ee; field; lra).
  unfold Rdiv.
  rewrite Rabs_mult, (Rabs_right (/ M)) by (apply Rle_ge, Rlt_le, Rinv_0_lt_compat, M0).
  rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [apply Rlt_le, Rinv_0_lt_compat, M0 |].
  eapply Rle_trans; [apply Rabs_triang |]. rewrite !Rabs_mult, (Rabs_right A) by lra.
  replace (M + 4)%nat with (S (M + 3)) by lia. rewrite off_S.
  assert (Rabs (1 + e) <= 1 + u).
  { eapply Rle_trans; [apply Rabs_triang |]. rewrite Rabs_R1. lra. }
  assert (Rabs (1 + e) * Rabs (s M - A) <= (1 + u) * (off (M + 3) * A))
    by (apply Rmult_le_compat; auto using Rabs_pos).
  assert (Rabs e * A <= u * A) by (apply Rmult_le_compat_r; assumption). lra.
Qed.

(* SUM.11, an affine map: x − h, the product, the sum, and the result as it is stored. *)
Theorem SUM_11_rounded x h s b d p y out :
  rounded d (x - h) -> rounded p (d * s) -> rounded y (p + b) -> rounded out y ->
  Rabs (out - (s * (x - h) + b)) <= off 4 * Rabs (s * (x - h)) + off 2 * Rabs b.
Proof.
  intros (d1 & D1 & E1) (d2 & D2 & E2) (d3 & D3 & E3) (d4 & D4 & E4).
  set (X := s * (x - h)).
  replace (out - (X + b)) with (X * ((1 + d1) * (1 + d2) * (1 + d3) * (1 + d4) - 1)
    + b * ((1 + d3) * (1 + d4) - 1)) by (rewrite E4, E3, E2, E1; unfold X; ring).
  eapply Rle_trans; [apply Rabs_triang |]. rewrite !Rabs_mult.
  assert (grow : forall k z e, Rabs e <= u -> Rabs (z - 1) <= off k ->
    Rabs (z * (1 + e) - 1) <= off (S k)).
  { intros k z e He Hz. pose proof (round_again k z 1 (z * (1 + e))) as R.
    rewrite Rabs_R1, !Rmult_1_r in R. apply R; [exists e; auto | exact Hz]. }
  assert (first : forall e, Rabs e <= u -> Rabs (1 + e - 1) <= off 1).
  { intros e He. replace (1 + e - 1) with e by ring. unfold off. simpl. lra. }
  rewrite (Rmult_comm (off 4)), (Rmult_comm (off 2)).
  apply Rplus_le_compat; apply Rmult_le_compat_l; auto using Rabs_pos.
Qed.
End Rounding.
